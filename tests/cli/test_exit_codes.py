"""docs/exit-codes.md as a table of command lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from scanner import pipeline
from tests.cli.conftest import CODE, Child, Invoke
from tests.samples import at, call, partial

ERROR = call("aten::_linalg_eigh", locations=(at(5, file="broken.py"),))
WARNING = call("aten::linalg_svd")
UNKNOWN = call("torchvision::nms")
FINE = call("aten::mm", locations=(at(5, file="clean.py"),))
PAGE = Path(__file__).parents[2] / "docs" / "exit-codes.md"


class Case(NamedTuple):
    """What was set up, the options, and the exit code."""

    name: str
    options: tuple[str, ...]
    code: int
    prepare: Callable[[Child, Path], object] = lambda _child, _folder: None


def yields(name: str, *ops: object) -> Callable[[Child, Path], None]:
    return lambda child, _: child.yields(name, *ops)  # type: ignore[arg-type]


def comment(name: str, text: str) -> Callable[[Child, Path], object]:
    return lambda _, folder: (folder / name).write_text(CODE.replace("pass", f"pass  # {text}"))


def file(name: str, text: str) -> Callable[[Child, Path], object]:
    return lambda _, folder: (folder / name).write_text(text)


def both(*steps: Callable[[Child, Path], object]) -> Callable[[Child, Path], object]:
    return lambda child, folder: [step(child, folder) for step in steps]


def lost(**how: bool) -> Callable[[Child, Path], None]:
    return lambda child, _: child.fails("broken.py", "it raised", **{"entry": "Net", **how})


BROKEN = yields("broken.py", ERROR)
KNOWN = file(
    "known.json",
    '{"schema": "opscan.baseline/1", "findings": [{"rule": "OPS101", "fingerprint": "'
    + "0" * 64
    + '", "model": "clean.py:Net"}]}',
)
CASES = [
    Case("nothing", ("clean.py",), 0),
    Case("an error", ("broken.py",), 1, BROKEN),
    Case("an error, never", ("broken.py", "--fail-on", "never"), 0, BROKEN),
    Case("a warning", ("clean.py",), 0, yields("clean.py", WARNING)),
    Case("a warning counts", ("clean.py", "--fail-on", "warning"), 1, yields("clean.py", WARNING)),
    Case(
        "ignored",
        ("broken.py",),
        0,
        both(BROKEN, comment("broken.py", "opscan: ignore[OPS101] known")),
    ),
    Case(
        "an unused ignore",
        ("clean.py",),
        0,
        both(yields("clean.py", FINE), comment("clean.py", "opscan: ignore[OPS101] known")),
    ),
    Case(
        "an unused ignore counts",
        ("clean.py", "--fail-on", "warning"),
        1,
        both(yields("clean.py", FINE), comment("clean.py", "opscan: ignore[OPS101] known")),
    ),
    Case("fixed", ("clean.py", "--fail-on", "warning", "--baseline", "known.json"), 0, KNOWN),
    Case("not captured", ("broken.py",), 3, lost()),
    Case("not captured, allowed", ("broken.py", "--allow-incomplete"), 0, lost()),
    Case(
        "captured in part",
        ("clean.py",),
        3,
        lambda child, _: child.yields("clean.py", FINE, capture=partial("loss", "it raised")),
    ),
    Case("unknown op", ("clean.py",), 3, yields("clean.py", UNKNOWN)),
    Case("unknown op, allowed", ("clean.py", "--allow-incomplete"), 0, yields("clean.py", UNKNOWN)),
    Case("1 over 3", ("clean.py",), 1, yields("clean.py", UNKNOWN, ERROR)),
    Case("2 over 1", ("broken.py", "gone.py"), 2, BROKEN),
    Case("2 over 3", ("clean.py", "gone.py"), 2, yields("clean.py", UNKNOWN)),
    Case("not loaded", ("broken.py",), 2, lost(unreadable=True)),
    Case("nothing there", ("gone.py",), 2),
    Case("unknown flag", ("clean.py", "--frobnicate"), 2),
    Case("unknown setting", ("clean.py",), 2, file("opscan.toml", "frobnicate = 1\n")),
    Case("no reason", ("clean.py",), 2, file("opscan.toml", '[[ignore]]\nrule = "OPS101"\n')),
    Case("no settings file", ("clean.py", "--config", "gone.toml"), 2),
    Case("no baseline", ("clean.py", "--baseline", "gone.json"), 2),
    Case("no revision", ("clean.py", "--diff-against", "gone"), 2),
    Case("nowhere to write", ("clean.py", "-o", "gone/report.txt"), 2),
    Case("no report", ("judge", "gone.json"), 2),
    Case("no command", (), 2),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exit_code(invoke: Invoke, child: Child, tmp_path: Path, case: Case) -> None:
    case.prepare(child, tmp_path)
    scans = bool(case.options) and case.options[0] != "judge"
    target = ("--target", "torch==2.9.1") if scans else ()
    found = invoke(*case.options, *target)
    assert found.code == case.code, found.err
    assert "Traceback" not in found.err


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_interrupts_and_bugs_are_2(
    invoke: Invoke, child: Child, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(pipeline, "capture_source", fail)
    assert invoke("clean.py", "--target", "torch==2.9.1").code == 2


def test_every_code_of_the_page_is_met() -> None:
    told = set(re.findall(r"^\| (\d) \|", PAGE.read_text(), re.MULTILINE))
    assert {str(case.code) for case in CASES} == told
