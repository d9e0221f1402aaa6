"""The script of a failure runs alone, and tells right from wrong by itself."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch

from scanner.backends.cpu import CpuDevice
from scanner.backends.open import open_device
from scanner.probe.execute import Options, run_case
from scanner.probe.outcome import CaseResult, Detection
from scanner.probe.repro import repro_script
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
        with contextlib.redirect_stdout(printed), mock.patch("time.sleep"):
            exec(compile(script, "repro.py", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        return int(end.code or 0), printed.getvalue()
    finally:
        sys.argv = before
        torch.set_default_dtype(torch.float32)
    raise AssertionError("the script did not exit")


def changed(script: str, ours: str) -> str:
    """The script with something else in place of what the device gives."""
    assert script.count("ours = run(DEVICE, wrt)") == 1
    return script.replace("ours = run(DEVICE, wrt)", f"ours = {ours}")


@pytest.mark.parametrize("configuration", CASES, ids=lambda c: c.op)
def test_the_cpu_is_right_by_its_own_script(configuration: OpCall) -> None:
    status, printed = run(repro_script(configuration, failing(configuration), "mps"))
    if configuration in (LINEAR, CONVOLUTION):  # which the CPU does not have
        assert status == 1
        assert "the device raises" in printed
        return
    assert (status, printed.splitlines()[-1]) == (0, "the device is right")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("[x * 1.01 for x in run(DEVICE, wrt)]", "gain +"),
        ("[x * 0 for x in run(DEVICE, wrt)]", "gain -100.000%"),
        ("[x * float('nan') for x in run(DEVICE, wrt)]", "finite on one side"),
        ("[x.double() for x in run(DEVICE, wrt)]", "the CPU gives"),
    ],
)
def test_a_wrong_device_is_told_from_a_right_one(dtype: str, wrong: str, words: str) -> None:
    script = repro_script(mm(dtype), failing(mm(dtype)), "mps")
    status, printed = run(changed(script, wrong))
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
    assert "CHECKS = [[0, 1]]" in script
    assert run(script)[0] == 0
    status, printed = run(changed(script, "[x * 1.5 for x in run(DEVICE, wrt)]"))
    assert status == 1
    assert "gain +50.000%" in printed


def test_a_crash_is_sought_in_the_op_and_in_its_gradient() -> None:
    crashed = CaseResult(op="aten::mm", status="crash", reason="ends the process")
    assert "CHECKS = [None, [0, 1]]" in repro_script(mm(), crashed, "mps")
    assert "CHECKS = [None]" in repro_script(ADD_, crashed, "mps").replace(", [0, 1]]", "]")
    whole = call("aten::bitwise_not", spec(dtype="int64"))
    assert "CHECKS = [None]" in repro_script(whole, crashed, "mps")


@pytest.mark.parametrize("fault", ["nan", "bias", "tile", "dtype", "stride", "grad", "raise"])
def test_on_opscans_own_devices_the_script_fails_as_the_scan_did(fault: str) -> None:
    device = f"drill:{fault}=aten::mm"
    result = run_case(mm(), open_device(device), Options())
    assert result.status not in {"native", "unknown"}
    script = repro_script(mm(), result, device)
    status, printed = run(script, device)
    verdict = "RAISES" if fault == "raise" else "IS WRONG"
    assert (status, printed.splitlines()[-1]) == (1, f"THE DEVICE {verdict}")
    assert run(script, "drill:noise=aten::mm")[0] == 0


def test_an_input_that_was_written_is_seen() -> None:
    clobbered = CaseResult(
        op="aten::mm",
        status="wrong",
        detections=(Detection(kind="input-clobbered", where="self", message="changed"),),
    )
    script = repro_script(mm(), clobbered, "mps")
    assert run(script)[0] == 0
    ours = "[x * 0 if n == 2 else x for n, x in enumerate(run(DEVICE, wrt))]"
    status, printed = run(changed(script, ours))
    assert status == 1
    assert printed.count("equal to the CPU's") == 2  # what is returned, and the other argument


def test_a_reference_that_torch_lacks_is_opscans() -> None:
    """Of an op that only MPS has: with values in the script when they are few."""
    small = repro_script(LINEAR, failing(LINEAR), "mps")
    assert "scanner" not in small
    large = call(
        LINEAR.op,
        *(spec(shape=(300, 300)), spec("grad_output", (300, 300)), spec("weight", (300, 300))),
        output_mask=[True, True, True],
    )
    script = repro_script(large, failing(large), "mps")
    assert f'REFERENCE = runnable("{LINEAR.op}"' in script
    ours = '[x * 1.01 for x in run("cpu", wrt)]'
    assert run(changed(script, ours))[0] == 1
    status, printed = run(changed(script, 'run("cpu", wrt)'))
    assert (status, printed.splitlines()[-1]) == (0, "the device is right")


def test_where_the_cpu_fails_too_nothing_can_be_told() -> None:
    script = repro_script(mm(), failing(mm()), "mps").replace(
        "    return op(", "    return op.none("
    )
    status, printed = run(script)
    assert (status, printed.splitlines()[-1]) == (2, "nothing can be told")
    assert "the CPU raises AttributeError" in printed


def test_a_script_runs_alone(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(repro_script(mm(), run_spoiled(mm(), biased), "cpu"), encoding="utf-8")
    assert "scanner" not in script.read_text(encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-I", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.endswith("the device is right\n")
