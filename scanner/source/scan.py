"""Source files → `SourceScan`: read, look in the cache, examine the rest, put in order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from scanner import __version__
from scanner.records import Finding, SourceScan, Target
from scanner.source.check import concerns
from scanner.source.discover import STDIN, SourceFile
from scanner.source.read import Examined, Trouble
from scanner.source.work import Job, Pending, examined

__all__ = ["MARK", "Scanned", "SourcePlan", "scan_files"]

_ROOT = Path(__file__).parents[2]
_STATE_OF = (_ROOT / "scanner" / "source", _ROOT / "opdb" / "data" / "torch")
"""What findings depend on, beside the files."""
MARK = b"opscan:"
"""A file without it has no comments for opscan."""
_WORTH_A_CACHE = 200_000
"""Bytes that are parsed in the time that opening the cache takes, and some more."""
_FINDINGS = msgspec.json.Decoder(tuple[Finding, ...])


@dataclass(frozen=True, kw_only=True)
class SourcePlan:
    """How files are scanned."""

    targets: tuple[Target, ...] = ()
    cache: Callable[[], Path] | None = None
    """Where findings are kept from scan to scan; None keeps nothing."""
    processes: int = 1
    stdin: Callable[[], bytes] = field(default=lambda: b"")
    """Reads standard input, for a file `-`."""


class Scanned(NamedTuple):
    """The result, and what is said to the user beside it."""

    source: SourceScan
    notices: tuple[str, ...] = ()
    tracebacks: tuple[str, ...] = ()
    """Of bugs of opscan's."""
    marked: tuple[tuple[str, bytes], ...] = ()
    """Name and content of files that may hold comments for opscan."""


def scan_files(files: Sequence[SourceFile], plan: SourcePlan) -> Scanned:
    """Judge files by the source rules. Findings are in the order of files, then of lines."""
    outcomes: dict[int, Examined] = {}
    pending: list[Pending] = []
    marked: list[tuple[str, bytes]] = []
    skipped = 0
    for index, file in enumerate(files):
        try:
            content = plan.stdin() if file.path == STDIN else _content(file.path)
        except OSError as error:
            reason = error.strerror or str(error)
            outcomes[index] = Examined(trouble=Trouble(f"it cannot be read: {reason}"))
            continue
        if MARK in content:
            marked.append((file.name, content))
        if concerns(content):
            pending.append(Pending(index, content))
        else:
            skipped += 1
    notices = _examine(pending, plan, outcomes)
    findings = [
        each for index in sorted(outcomes) for each in _named(files[index], outcomes[index])
    ]
    return Scanned(
        SourceScan(files=len(files), skipped=skipped, findings=tuple(findings)),
        notices,
        _tracebacks(outcomes.values()),
        tuple(marked),
    )


def _content(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - a Path for each of thousands takes longer
        return file.read()


def _examine(
    pending: Sequence[Pending], plan: SourcePlan, outcomes: dict[int, Examined]
) -> tuple[str, ...]:
    """Fill in outcomes, from the cache where files are as before; what to tell the user."""
    job = Job(plan.targets, plan.processes)
    if plan.cache is None or sum(len(each.content) for each in pending) < _WORTH_A_CACHE:
        outcomes.update(examined(pending, job))
        return ()
    from scanner.source.cache import Cache, content_key, engine_key

    facts = [__version__, sys.version, *(target.id for target in plan.targets)]
    engine = engine_key(_STATE_OF, facts)
    keys = {each.number: content_key(each.content, engine) for each in pending}
    cache = Cache(plan.cache())
    kept = cache.get(keys.values())
    known = {index: kept[key] for index, key in keys.items() if key in kept}
    outcomes.update({index: Examined(_FINDINGS.decode(data)) for index, data in known.items()})
    fresh = dict(examined([each for each in pending if each.number not in known], job))
    outcomes.update(fresh)
    cache.put(
        {
            keys[index]: msgspec.json.encode(each.findings)
            for index, each in fresh.items()
            if each.trouble is None
        }
    )
    return (cache.notice,) if cache.notice else ()


def _named(file: SourceFile, outcome: Examined) -> Iterable[Finding]:
    """Findings, now with the name of their file."""
    if outcome.trouble is not None:
        from scanner.source.problems import problem_finding

        return [problem_finding(file, outcome.trouble)]
    return (_at(finding, file.name) for finding in outcome.findings)


def _at(finding: Finding, name: str) -> Finding:
    if finding.location is None:
        return finding
    location = msgspec.structs.replace(finding.location, file=name)
    return msgspec.structs.replace(finding, location=location)


def _tracebacks(outcomes: Iterable[Examined]) -> tuple[str, ...]:
    told = (each.trouble.traceback for each in outcomes if each.trouble is not None)
    return tuple(traceback for traceback in told if traceback)
