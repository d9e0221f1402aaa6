"""`opscan fix PATH...`: make the corrections that source rules offer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scanner.cli.accepted import settings_options
from scanner.cli.completers import files, targets
from scanner.cli.streams import standard_input
from scanner.cli.view import gate_options

if TYPE_CHECKING:
    from scanner.fix.mend import Accepts
    from scanner.fix.run import Fixing, Remaining
    from scanner.records import Finding, LineIgnore, Report, SourceScan
    from scanner.settings import Settings

__all__ = ["command"]

_EPILOG = """\b
Exit codes:
  0  nothing at or above --fail-on is left; with --diff: nothing would change
  1  findings are left; with --diff: something would change
  2  a named file is no Python, a file could not be written, usage, internal error
  3  a file in a directory is no Python (--allow-incomplete: 0)
"""


@click.command("fix", short_help="Correct source files for Apple GPUs.", epilog=_EPILOG)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, shell_complete=files)
@click.option("--diff", is_flag=True, help="Show what would change, and change nothing.")
@click.option(
    "--unsafe", is_flag=True, help="Also what may change what the program does where it ran before."
)
@click.option(
    "--target", "-t", multiple=True, metavar="SPEC", shell_complete=targets, help="As for scan."
)
@click.option("-q", "--quiet", is_flag=True, help="Only the summary line.")
@gate_options
@settings_options
def command(paths: tuple[str, ...], diff: bool, unsafe: bool, quiet: bool, **flags: Any) -> int:
    """Correct what source rules find in files and directories; `-` reads standard input.

    Nothing is run. Only safe corrections are made, unless --unsafe is given. What an ignore names
    is left alone. Files keep their formatting, comments, encoding and newlines.
    """
    from dataclasses import replace

    from scanner.cli.accepted import load
    from scanner.cli.static import plan_static
    from scanner.fix.files import put_back
    from scanner.fix.run import fix_files
    from scanner.source.discover import source_files

    settings = load(flags)
    plan = plan_static(paths, settings)
    piped = standard_input() if "-" in paths else b""
    result = fix_files(
        source_files(paths, str(plan.cwd)),
        replace(plan.how, stdin=lambda: piped),
        unsafe=unsafe,
        accepts_in=lambda name: _accepts(name, settings),
        put=lambda path, fixed: "" if diff or path == "-" else put_back(path, fixed),
    )
    report = _left(result, settings, paths)
    said = _said(result, report, diff=diff, unsafe=unsafe, quiet=quiet)
    if diff:
        sys.stdout.write("".join(_diff(each) for each in result.files if each.changed))
    elif "-" in paths:
        sys.stdout.buffer.write(_piped(result, piped))
    (sys.stderr if diff or "-" in paths else sys.stdout).write(said)
    sys.stdout.flush()
    return _exit_code(result, report, diff=diff)


def _accepts(name: str, settings: Settings) -> Accepts:
    """Whether ignores, in comments or settings, are about findings in a file."""

    def accepts(findings: Sequence[Finding], text: str) -> list[bool]:
        from msgspec.structs import replace

        from scanner.records import SourceScan
        from scanner.suppress.comments import ignores_in

        placed = tuple(
            replace(each, location=replace(each.location, file=name)) if each.location else each
            for each in findings
        )
        report = _accepted(SourceScan(files=1, findings=placed), settings, ignores_in(text, name))
        source = report.source
        return [each.suppressed is not None for each in (source.findings if source else ())]

    return accepts


def _accepted(source: SourceScan, settings: Settings, lines: tuple[LineIgnore, ...]) -> Report:
    """Findings as a report, under everything that was accepted."""
    from scanner.cli.accepted import accept
    from scanner.judge.gate import Gate, exit_code, summarize
    from scanner.records import Report

    gate = Gate(fail_on=settings.fail_on, allow_incomplete=settings.allow_incomplete)
    code = exit_code((), gate, source)
    report = Report(source=source, summary=summarize((), source), exit_code=code)
    return accept(report, settings, (), lines)


def _left(result: Remaining, settings: Settings, paths: Sequence[str]) -> Report:
    """What is left after the corrections."""
    from msgspec.structs import replace

    from scanner.cli.accepted import comments_in
    from scanner.source.discover import shown_roots

    changed = {each.file.name: each.fixed.new for each in result.files if each.changed}
    marked = [(name, changed.get(name, content)) for name, content in result.scanned.marked]
    source = replace(result.source, roots=shown_roots(paths, str(Path.cwd())))
    return _accepted(source, settings, comments_in(marked))


def _said(result: Remaining, report: Report, *, diff: bool, unsafe: bool, quiet: bool) -> str:
    from scanner.report import Style, render
    from scanner.report.fixed_text import fixed_counts, fixed_text, left_text
    from scanner.report.found import findings_of

    changed = [each for each in result.files if each.changed]
    counts = [(each.file.name, fixed_counts(each.before, each.after)) for each in changed]
    total = sum(number for _, each in counts for number in each.values())
    left = [each.finding for each in findings_of(report) if not each.finding.suppressed]
    summary = left_text(total, len(changed), left, would=diff, unsafe=unsafe)
    for note in result.scanned.notices:
        sys.stderr.write(f"opscan: note: {note}\n")
    for each in result.files:
        if each.failed:
            sys.stderr.write(f"opscan: error: {each.file.name}: {each.failed}\n")
        elif each.fixed.remark:
            sys.stderr.write(f"opscan: note: {each.file.name}: {each.fixed.remark}\n")
    if quiet:
        return summary
    style = Style(width=100, color=False, verbosity=0)
    return render(report, "concise", style) + fixed_text(counts, would=diff) + summary


def _diff(each: Fixing) -> str:
    from scanner.report.fixed_text import diff_text

    return diff_text(each.file.name, *each.fixed.texts)


def _piped(result: Remaining, piped: bytes) -> bytes:
    return next((each.fixed.new for each in result.files if each.file.path == "-"), piped)


def _exit_code(result: Remaining, report: Report, *, diff: bool) -> int:
    if any(each.failed for each in result.files):
        return 2
    if not diff or report.exit_code == 2:
        return report.exit_code
    if any(each.changed for each in result.files):
        return 1
    return report.exit_code if report.exit_code == 3 else 0
