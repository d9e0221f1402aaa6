"""The script of a failure runs alone, and tells right from wrong by itself."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from scanner.backends.cpu import CpuDevice
from scanner.probe.execute import run_case
from scanner.probe.outcome import CaseResult
from scanner.probe.repro import issue_text, repro_script, write_repro
from scanner.records import OpCall
from tests.probe.num_support import QUICK, biased, call, mm, run_spoiled, spec
from tests.probe.test_num_execute import ADD_, CONVOLUTION, LINEAR, RELU
from tests.probe.test_num_gradients import steeper

STRIDED = call("aten::relu_", spec(shape=(3, 4), stride=(5, 1), offset=2))
CASES = [
    RELU,
    ADD_,
    STRIDED,
    LINEAR,
    CONVOLUTION,
    mm("bfloat16"),
    call("aten::cat", spec("tensors[0]", (2, 3)), spec("tensors[1]", (4, 3)), dim=0),
    call("aten::index.Tensor", spec(shape=(5, 6)), spec("indices[1]", (3,), "int64")),
    call("aten::clamp", spec(dtype="float16"), min="-inf", max=0.5),
    call("aten::sum.dim_IntList", spec(shape=(0, 3)), dim=[0], keepdim=False, dtype="float32"),
    call("aten::mul.Tensor", spec(dtype="complex64"), spec("other", alias=0, dtype="complex64")),
]


def failing(configuration: OpCall) -> CaseResult:
    return CaseResult(op=configuration.op, status="wrong", reason='it says "no" \\ and more')


def run(script: str, device: str = "cpu") -> tuple[int, str]:
    """Exit status and output of a script, run in this process for speed."""
    printed = io.StringIO()
    before = sys.argv
    sys.argv = ["repro.py", device]
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(script, "repro.py", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        return int(end.code or 0), printed.getvalue()
    finally:
        sys.argv = before
        torch.set_default_dtype(torch.float32)
    raise AssertionError("the script did not exit")


@pytest.mark.parametrize("configuration", CASES, ids=lambda c: c.op)
def test_the_cpu_is_right_by_its_own_script(configuration: OpCall) -> None:
    status, printed = run(repro_script(configuration, failing(configuration), "mps"))
    if configuration in (LINEAR, CONVOLUTION):  # which the CPU does not have
        assert status == 1
        assert "the device raises NotImplementedError" in printed
        return
    assert (status, printed.splitlines()[-1]) == (0, "the device is right")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("[x * 1.01 for x in run(DEVICE)]", "gain +"),
        ("[x * 0 for x in run(DEVICE)]", "gain -100.000%"),
        ("[x * float('nan') for x in run(DEVICE)]", "finite on one side"),
        ("[x.double() for x in run(DEVICE)]", "the CPU gives"),
    ],
)
def test_a_wrong_device_is_told_from_a_right_one(dtype: str, wrong: str, words: str) -> None:
    script = repro_script(mm(dtype), failing(mm(dtype)), "mps")
    assert script.count("ours = run(DEVICE)") == 1
    status, printed = run(script.replace("ours = run(DEVICE)", f"ours = {wrong}"))
    assert status == 1
    assert "THE DEVICE IS WRONG" in printed
    assert words in printed


def test_the_script_holds_the_very_values_that_failed() -> None:
    script = repro_script(STRIDED, failing(STRIDED), "mps")
    space: dict[str, Any] = {"__name__": "repro"}
    exec(script.rpartition("sys.exit")[0], space)
    (tensor,) = space["tensors"]("cpu", False)
    result = run_case(STRIDED, CpuDevice(), QUICK)
    assert result.status == "native"
    from scanner.probe.schema import schema_of
    from scanner.probe.trials import operands_for

    (drawn,) = operands_for(schema_of(STRIDED.op), STRIDED, 0, "drawn").tensors
    assert (tensor.stride(), tensor.storage_offset()) == ((5, 1), 2)
    assert torch.equal(tensor, drawn)


def test_values_too_many_to_embed_are_drawn_by_the_script() -> None:
    large = call("aten::relu", spec(shape=(512, 512)))
    script = repro_script(large, failing(large), "mps")
    assert len(script) < 20_000
    assert run(script)[0] == 0


def test_a_failing_gradient_has_a_script_of_gradients() -> None:
    result = run_case(mm(), steeper(1.5))
    script = repro_script(mm(), result, "mps")
    assert "GRADIENT = [0, 1]" in script
    assert run(script)[0] == 0
    status, printed = run(
        script.replace("ours = run(DEVICE)", "ours = [x * 1.5 for x in run(DEVICE)]")
    )
    assert status == 1
    assert "gain +50.000%" in printed


def test_files_run_alone_and_the_issue_holds_the_script(tmp_path: Path) -> None:
    result = run_spoiled(mm(), biased)
    script, issue = write_repro(tmp_path / "out", mm(), result, CpuDevice().facts)
    again, _ = write_repro(tmp_path / "out", mm(), result, CpuDevice().facts)
    assert (script.name, again.name) == ("aten_mm_float32_0.py", "aten_mm_float32_1.py")
    source = script.read_text(encoding="utf-8")
    assert "scanner" not in source
    assert source in issue.read_text(encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-I", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.endswith("the device is right\n")


def test_an_issue_says_what_where_and_on_what() -> None:
    result = run_spoiled(mm(), biased)
    facts = msgspec.structs.replace(
        CpuDevice().facts, backend="mps", name="Apple M3", os="macOS 15.5", details={"FLAG": "1"}
    )
    text = issue_text(mm(), result, facts, "print()\n")
    assert text.startswith("# `aten::mm` on mps: wrong\n\nOutput 0: 1")
    for part in (
        "| `mat2` | float32 | [32, 32] | [32, 1] | 0 |",
        "- Apple M3",
        "- macOS 15.5",
        "FLAG: 1",
    ):
        assert part in text
