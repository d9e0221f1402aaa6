"""What a pre-filled bug report says."""

from __future__ import annotations

import msgspec

from scanner.backends.interface import DeviceFacts
from scanner.probe.issue import Check, Failure, issue_text
from scanner.probe.outcome import CaseResult, OutputResult, Worst
from scanner.probe.protocol import Death
from scanner.records import OpCall, TensorSpec

M3 = DeviceFacts(
    backend="mps",
    name="Apple M3",
    framework="torch 2.9.1",
    os="macOS 15.5 (24F74)",
    details={"FLAG": "a|b"},
)
MM = OpCall(
    op="aten::mm",
    phase="forward",
    inputs=(
        TensorSpec(name="self", dtype="float32", shape=(2, 3), stride=(3, 1)),
        TensorSpec(name="mat2", dtype="float32", shape=(3, 4), stride=(1, 3), offset=5),
    ),
    attributes={"alpha": 2},
)
WRONG = CaseResult(
    op="aten::mm",
    status="wrong",
    reason="output 0: 2 of 8 elements fail",
    outputs=(
        OutputResult(
            name="0",
            passed=False,
            standard="contraction",
            count=2,
            elements=8,
            share=0.25,
            error_factor=12.345,
            min_tolerance=0.01,
            worst=Worst(index=(1, 3), device=1.01, reference=1.0, cpu=1.0000001),
        ),
        OutputResult(name="1", passed=True, standard="exact", elements=8),
    ),
)
CONFIRMED = Check(status="confirmed", message="the script exited with 1", printed="torch\n```")


def text(result: CaseResult = WRONG, death: Death | None = None, **other: object) -> str:
    given = {"facts": M3, "device": "mps", "script": "print()\n", "check": CONFIRMED} | other
    return issue_text(Failure(call=MM, result=result, death=death), **given)  # type: ignore[arg-type]


def test_a_wrong_result_is_told_in_figures() -> None:
    written = text()
    assert written.startswith(
        "# `aten::mm` on mps: wrong values\n\nOutput 0: 2 of 8 elements fail.\n"
    )
    assert "| 0 | 2 of 8 (25.00%) | [1, 3] | 1.01 | 1.0 | 1.0000001 | 12.3 | 0.01 |" in written
    assert "| 1 |" not in written  # it passed
    assert "| `mat2` | float32 | [3, 4] | [1, 3] | 5 | strided |" in written
    assert "- `alpha`: `2`" in written


def test_versions_are_a_table() -> None:
    for row in ("| framework | torch 2.9.1 |", "| device | Apple M3 |", "| FLAG | a\\|b |"):
        assert f"\n{row}\n" in text()


def test_the_script_and_what_it_showed_close_the_text() -> None:
    written = text()
    assert "\n```python\nprint()\n```\n" in written
    assert "On mps, after it was written: **confirmed**: the script exited with 1." in written
    # What was printed holds a fence of its own.
    assert written.endswith("\n\n````\ntorch\n```\n````\n")


def test_a_crash_quotes_its_last_words() -> None:
    crash = CaseResult(op="aten::mm", status="crash", reason="ends the process with SIGABRT")
    death = Death(kind="signal", what="SIGABRT", stderr="assertion failed", times=2, runs=2)
    written = text(crash, death)
    assert "It printed to stderr:\n\n```\nassertion failed\n```" in written
    assert "Found: SIGABRT (2 of 2 runs)." in written


def test_without_a_script_it_says_why() -> None:
    written = text(script="", check=Check(status="no script", message="it holds no values"))
    assert "## Script" not in written
    assert written.endswith("## Check\n\n**no script**: it holds no values.\n")


def test_a_drill_asks_for_no_report() -> None:
    drill = msgspec.structs.replace(M3, backend="drill")
    assert "there is nothing to report" in text(facts=drill)
    assert "there is nothing to report" not in text()


def test_what_was_simulated_is_said_to_be() -> None:
    assert "on no Apple GPU" in text(facts=msgspec.structs.replace(M3, backend="metal-sim"))
    assert "Simulated" not in text()
