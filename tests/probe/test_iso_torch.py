"""The whole of it once, with torch: a drill of many faults, timing, and the fallback variable."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scanner.probe import torch_runner
from scanner.probe.limits import Launch, Limits
from scanner.probe.plan import config_key
from scanner.probe.protocol import Outcome
from scanner.probe.supervisor import probe
from scanner.probe.torch_runner import TorchRunner
from scanner.records import OpCall, TensorSpec


def spec(name: str, *shape: int, dtype: str = "float32") -> TensorSpec:
    stride = (shape[1], 1) if len(shape) == 2 else (1,)
    return TensorSpec(name=name, dtype=dtype, shape=shape, stride=stride)


def unary(op: str, dtype: str = "float32") -> OpCall:
    return OpCall(op=f"aten::{op}", phase="forward", inputs=(spec("self", 4, 6, dtype=dtype),))


def run(calls: list[OpCall], device: str, **options: object) -> dict[str, Outcome]:
    limits = Limits(case_s=20.0, first_s=20.0, linger_s=0.06)
    latest = {
        each.key: each
        for each in probe(calls, device, options, launch=Launch(workers=1), limits=limits)
    }
    return {each.op.removeprefix("aten::"): latest[config_key(each)] for each in calls}


MM = OpCall(op="aten::mm", phase="forward", inputs=(spec("self", 4, 6), spec("mat2", 6, 4)))


def test_a_drill_of_many_faults_in_one_scan() -> None:
    calls = [MM, *(unary(op) for op in ("exp", "sin", "cos", "tanh", "sqrt", "relu", "erf", "neg"))]
    faults = {
        "abort=aten::mm": ("mm", "crash", "ends the process with SIGABRT (2 of 2 runs)"),
        "nan=aten::exp": ("exp", "nan", "NaN"),
        "raise=aten::sin": ("sin", "unsupported", "no kernel"),
        "garbage=aten::cos": ("cos", "native", ""),
        "fallback=aten::tanh": ("tanh", "fallback", "runs on the CPU: aten::tanh"),
        "oom=aten::sqrt": ("sqrt", "unknown", "too little memory"),
        "dtype=aten::relu": ("relu", "wrong", "float64"),
        "noise=aten::erf": ("erf", "native", ""),
    }
    found = run(calls, "drill:" + ",".join(faults))
    for op, status, reason in faults.values():
        assert (op, found[op].status) == (op, status)
        assert reason in found[op].reason
    assert found["neg"].status == "native"
    death = found["mm"].death
    assert death is not None
    assert "failed assertion in aten::mm" in death.stderr
    # Python's own view of where it died.
    assert "in submit" in death.stderr


def test_conditions_and_numbers_reach_the_device() -> None:
    # Each configuration runs the op more than once; the second call is the repeat of the first.
    found = run([unary("exp"), unary("exp2"), unary("sin")], "drill:nan=aten::exp[rank=3],bias=*@1")
    assert found["exp"].status == "wrong"
    assert found["exp2"].status == "native"


def test_timing_is_part_of_what_passes() -> None:
    runner = TorchRunner("drill:slow=aten::mm", {"timing": True, "timing_s": 0.02, "repeats": 0})
    detail = runner.run(MM).detail
    timing = detail["timing"]
    assert set(timing) == {"device", "cpu", "ratio", "slow", "warning", "break_even"}
    assert timing["device"]["median_s"] > 0
    assert timing["device"]["first_s"] > 0
    assert "first_s" not in detail
    assert timing["device"]["samples"] == timing["cpu"]["samples"] >= 7
    assert "timing" not in TorchRunner("cpu", {}).run(MM).detail


def test_what_cannot_be_timed_is_still_judged() -> None:
    runner = TorchRunner("drill:raise=aten::mm@4", {"timing": True, "repeats": 0})
    runner._device.synchronize()
    ran = runner.run(MM)
    if "timing_error" not in ran.detail:
        pytest.fail(f"the fourth call was to fail: {ran}")
    assert ran.status == "native"


def test_what_takes_long_to_judge_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_runner, "_LONG_S", 0.0)
    ran = TorchRunner("cpu", {"timing": True, "repeats": 0}).run(MM)
    assert ran.status == "native"
    assert "timing" not in ran.detail
    assert ran.detail["timing_error"] == "one run takes too long for several"


def test_a_lost_device_is_refused_from_then_on() -> None:
    runner = TorchRunner("cpu", {})
    assert runner.check() is None

    def fail(*_: object) -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")

    runner._device.call = fail  # type: ignore[method-assign, assignment]
    assert runner.run(MM).status == "crash"
    unusable = runner.check()
    assert unusable is not None
    assert "device-side assert" in unusable.reason


def test_probing_imports_no_torch_in_the_parent() -> None:
    code = (
        "import sys, scanner.probe.supervisor, scanner.probe.worker, scanner.probe.store;"
        "print(sorted(set(sys.modules) & {'torch', 'numpy'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
