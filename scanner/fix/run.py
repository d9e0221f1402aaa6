"""Files → files with corrections made, and a scan of what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from scanner.fix.files import FixedFile, fix_content
from scanner.fix.mend import Accepts, Mender
from scanner.records import Finding, SourceScan
from scanner.source.discover import STDIN, SourceFile
from scanner.source.scan import Scanned, SourcePlan, scan_files
from scanner.source.work import checker_for

__all__ = ["Fixing", "Remaining", "fix_files"]

AcceptsIn = Callable[[str], Accepts]
"""The name of a file → what the user has accepted in it."""


class Fixing(NamedTuple):
    """One file that was looked at closely."""

    file: SourceFile
    fixed: FixedFile
    failed: str = ""
    """Why it could not be corrected, or not be written."""

    @property
    def changed(self) -> bool:
        """Whether corrections were made in it."""
        return self.fixed.new != self.fixed.old and not self.failed

    @property
    def before(self) -> tuple[Finding, ...]:
        """What the rules said of the file as it was."""
        return tuple(_named(each, self.file.name) for each in self.fixed.before)

    @property
    def after(self) -> tuple[Finding, ...]:
        """What they say of it as it is now."""
        if self.failed:
            return self.before
        return tuple(_named(each, self.file.name) for each in self.fixed.after)


class Remaining(NamedTuple):
    """What is left after the corrections, and which files have them."""

    source: SourceScan
    files: tuple[Fixing, ...]
    scanned: Scanned


def fix_files(
    files: Sequence[SourceFile],
    plan: SourcePlan,
    *,
    unsafe: bool,
    accepts_in: AcceptsIn,
    put: Callable[[str, FixedFile], str],
) -> Remaining:
    """Make corrections in all files that have any to make.

    `put` writes one file and says why not; files are handed to it one after the other, so that an
    interruption leaves each of them either as it was or corrected.
    """
    scanned = scan_files(files, plan)
    promising = {
        each.location.file
        for each in scanned.source.findings
        if each.location is not None and each.fix is not None and (each.fix.safe or unsafe)
    }
    checker = checker_for(plan.targets)
    done: list[Fixing] = []
    for file in files:
        if file.name in promising:
            mender = Mender(checker, unsafe=unsafe, accepts=accepts_in(file.name))
            done.append(_fixed(file, plan, mender, put))
    left = tuple(_left(scanned.source, done))
    return Remaining(replace(scanned.source, findings=left), tuple(done), scanned)


def _fixed(
    file: SourceFile, plan: SourcePlan, mender: Mender, put: Callable[[str, FixedFile], str]
) -> Fixing:
    try:
        content = plan.stdin() if file.path == STDIN else _content(file.path)
    except OSError as error:
        return Fixing(file, FixedFile(b"", b""), f"it cannot be read: {error.strerror or error}")
    fixed = fix_content(content, mender)
    changed = fixed.new != fixed.old
    return Fixing(file, fixed, put(file.path, fixed) if changed else fixed.trouble)


def _content(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - as every source file is read
        return file.read()


def _left(source: SourceScan, done: Sequence[Fixing]) -> Iterator[Finding]:
    """Findings of all files in their order, of the fixed ones as they are now."""
    changed = {each.file.name: each for each in done if each.changed}
    told: set[str] = set()
    for finding in source.findings:
        name = finding.location.file if finding.location is not None else ""
        if name not in changed:
            yield finding
        elif name not in told:
            told.add(name)
            yield from changed[name].after


def _named(finding: Finding, name: str) -> Finding:
    if finding.location is None:
        return finding
    return replace(finding, location=replace(finding.location, file=name))
