"""What kept a file from being judged, as a finding (OPS9xx)."""

from __future__ import annotations

from msgspec.structs import replace

from scanner.records import Finding, Location
from scanner.source.discover import SourceFile
from scanner.source.read import Trouble

__all__ = ["problem_finding"]


def problem_finding(file: SourceFile, trouble: Trouble) -> Finding:
    """OPS903 for a file that the user named, OPS906 for one in a directory, OPS904 for our bugs."""
    from scanner.judge.findings import problem_findings  # needs all that judging needs
    from scanner.judge.rules import Problem

    (finding,) = problem_findings(
        Problem(
            name=file.name,
            message=trouble.reason,
            remedy=_remedy(file, trouble),
            unreadable=not trouble.traceback and file.asked,
            unread=not trouble.traceback and not file.asked,
            internal=bool(trouble.traceback),
        )
    )
    return replace(finding, location=_location(file, trouble))


def _remedy(file: SourceFile, trouble: Trouble) -> str:
    if not trouble.line:
        return "Make it a readable Python file, or leave it out."
    mend = "Mend the syntax" if file.asked else "Mend the syntax, or leave the file out"
    return f"{mend}; it was read with the grammar of the Python that runs opscan."


def _location(file: SourceFile, trouble: Trouble) -> Location:
    return Location(
        file=file.name,
        line=trouble.line or 1,
        code=trouble.code,
        column=trouble.column or None,
    )
