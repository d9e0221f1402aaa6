"""Findings about source code, and what was accepted, in the text report."""

from __future__ import annotations

from scanner.records import Location, SourceScan
from scanner.report.interface import Style
from scanner.report.text import render
from tests.suppress.samples import comment, finding, model, report, under


def source(*lines: int) -> SourceScan:
    found = tuple(
        finding(
            "OPS601",
            line,
            op="",
            message=".cuda() needs CUDA",
            remedy="Write .to(device).",
            location=Location(file="nets/a.py", line=line, column=5, code="x.cuda()\x1b[2J"),
        )
        for line in lines
    )
    return SourceScan(files=3, findings=found, roots=("nets",))


def shown(*lines: int, verbosity: int = 0, known: tuple[int, ...] = ()) -> str:
    comments = [comment(line, "OPS601", file="nets/a.py", reason="a demo") for line in known]
    found = under(report(source=source(*lines)), *comments)
    return render(found, Style(width=80, verbosity=verbosity))


def test_files_are_headings() -> None:
    assert shown(3, 12) == (
        "2 errors, 0 warnings in 3 files on torch 2.9.1\n"
        "\n"
        "nets/a.py\n"
        "  3:5   error  OPS601 .cuda() needs CUDA\n"
        "               x.cuda()\N{REPLACEMENT CHARACTER}[2J\n"
        "               -> Write .to(device).\n"
        "  12:5  error  OPS601 .cuda() needs CUDA\n"
        "               x.cuda()\N{REPLACEMENT CHARACTER}[2J\n"
        "               -> Write .to(device).\n"
    )


def test_nothing_found_is_said() -> None:
    assert shown() == "no errors, no warnings in 3 files on torch 2.9.1\n"


def test_what_is_ignored_is_counted_and_listed_when_asked() -> None:
    assert shown(3, known=(3,)) == "no errors, no warnings in 3 files on torch 2.9.1; 1 ignored\n"
    verbose = shown(3, known=(3,), verbosity=1)
    assert "OPS601 ignored: a demo" in verbose
    assert "Write .to(device)." not in verbose


def test_models_and_files_are_both_counted() -> None:
    both = report(model(finding()), source=source(3))
    assert render(both, Style()).startswith("2 errors, 0 warnings in 1 model and 3 files on ")
    assert render(both, Style(verbosity=-1)).count("\n") == 1
