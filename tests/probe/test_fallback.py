"""What runs on the CPU: with the variable, without it, and at what cost."""

from __future__ import annotations

import pytest

from scanner.backends.drill import DrillDevice
from scanner.backends.mps_facts import FALLBACK_VARIABLE
from scanner.probe.fallback import FallbackCost, combined, cost_text
from scanner.probe.fallback_cost import fallback_cost
from scanner.probe.measure import measure
from scanner.probe.plan import config_key
from scanner.probe.timing import Series
from scanner.records import Measurement, OpCall, Status, TensorSpec


def spec(name: str, *shape: int, device: str = "target", dtype: str = "float32") -> TensorSpec:
    stride = (shape[1], 1) if len(shape) == 2 else (1,)
    return TensorSpec(name=name, dtype=dtype, shape=shape, stride=stride, device=device)


def unary(op: str) -> OpCall:
    here = spec("self", 4, 6)
    return OpCall(op=f"aten::{op}", phase="forward", inputs=(here,), outputs=(spec("0", 4, 6),))


def series(median: float) -> Series:
    return Series(
        first_s=1, median_s=median, p10_s=median, p90_s=median, spread=0, samples=5, calls=1
    )


def said(status: Status, reason: str = "because", **detail: object) -> Measurement:
    return Measurement(device="d", status=status, detail={"reason": reason, **detail})


COST = FallbackCost(
    device=series(312e-6), cpu=series(45e-6), lost_s=267e-6, bytes_out=1_234_567, bytes_back=96
)


def test_the_cost_in_words() -> None:
    assert cost_text(COST) == (
        "a call takes 312 µs with waiting for the device and copying 1.23 MB out and 96 bytes "
        "back, 45 µs on the CPU alone"
    )


def test_bytes_are_those_of_what_crosses() -> None:
    device = DrillDevice("fallback=*")
    mixed = OpCall(
        op="aten::mul.Tensor",
        phase="forward",
        inputs=(spec("self", 4, 6), spec("other", 1, 6, device="cpu")),
        outputs=(spec("0", 4, 6),),
    )
    with pytest.warns(UserWarning, match="fall back"):
        cost = fallback_cost(device, mixed, 0)
    assert cost is not None
    assert (cost.bytes_out, cost.bytes_back) == (4 * 6 * 4, 4 * 6 * 4)
    assert cost.device.samples == cost.cpu.samples >= 5
    assert cost.device.calls == 1
    assert cost.lost_s == max(0.0, cost.device.median_s - cost.cpu.median_s)


def test_what_is_written_in_place_comes_back_once() -> None:
    device = DrillDevice("noise=aten::relu")
    inplace = OpCall(
        op="aten::add_.Tensor",
        phase="forward",
        inputs=(spec("self", 4, 6), spec("other", 4, 6)),
        outputs=(spec("0", 4, 6),),
        attributes={"alpha": 1},
    )
    foreach = OpCall(
        op="aten::_foreach_neg_",
        phase="optimizer",
        inputs=(spec("self[0]", 4, 6), spec("self[1]", 2, 2)),
    )
    written, listed = (fallback_cost(device, call, 0) for call in (inplace, foreach))
    assert written is not None
    assert listed is not None
    assert (written.bytes_out, written.bytes_back) == (192, 96)
    assert (listed.bytes_out, listed.bytes_back) == (112, 112)


@pytest.mark.parametrize(
    ("on", "reason"),
    [
        (said("fallback", "runs on the CPU: x"), f"because; with {FALLBACK_VARIABLE}=1 it runs"),
        (said("unsupported"), f"because; with {FALLBACK_VARIABLE}=1 it raises too"),
        (said("wrong", "bad"), f"because; with {FALLBACK_VARIABLE}=1: wrong, bad"),
    ],
)
def test_what_raises_says_what_the_variable_does(on: Measurement, reason: str) -> None:
    found = combined(said("unsupported"), on, enabled=False)
    assert found.status == "unsupported"
    assert found.detail["reason"].startswith(reason)
    assert found.detail["fallback"]["off"]["status"] == "unsupported"
    assert found.detail["fallback"]["on"]["status"] == on.status


def test_with_the_variable_set_the_fallback_is_the_verdict() -> None:
    on = said("fallback", "runs on the CPU: x", fallbacks=["x"], fallback_cost={"lost_s": 1.0})
    found = combined(said("unsupported"), on, enabled=True)
    assert found.status == "fallback"
    assert found.detail["reason"] == f"runs on the CPU: x; without {FALLBACK_VARIABLE} it raises"
    assert found.detail["fallback"]["on"] == {
        "status": "fallback",
        "reason": "runs on the CPU: x",
        "ops": ["x"],
        "cost": {"lost_s": 1.0},
    }


def test_one_that_does_not_raise_was_not_run_twice() -> None:
    assert combined(said("native"), None, enabled=True) == said("native")
    found = combined(said("fallback"), None, enabled=False)
    assert set(found.detail["fallback"]) == {"off"}


CALLS = [unary(op) for op in ("exp", "sin", "cos", "neg")]
DRILL = "drill:missing=aten::exp,fallback=aten::sin,raise=aten::cos"


@pytest.mark.parametrize(("fallback", "exp"), [(False, "unsupported"), (True, "fallback")])
def test_both_settings_are_run(fallback: bool, exp: str) -> None:
    environ_says_the_opposite = {FALLBACK_VARIABLE: "0" if fallback else "1"}
    found = measure(CALLS, DRILL, environ_says_the_opposite, fallback=fallback)
    by_op = {call.op.removeprefix("aten::"): found[config_key(call)] for call in CALLS}
    statuses = {op: result.status for op, result in by_op.items()}
    assert statuses == {"exp": exp, "sin": "fallback", "cos": "unsupported", "neg": "native"}
    sides = {
        op: {setting: side["status"] for setting, side in result.detail["fallback"].items()}
        for op, result in by_op.items()
        if "fallback" in result.detail
    }
    assert sides == {
        "exp": {"off": "unsupported", "on": "fallback"},
        "sin": {"off": "fallback"},
        "cos": {"off": "unsupported", "on": "unsupported"},
    }
    with_it = by_op["exp"].detail["fallback"]["on"]
    assert with_it["ops"] == ["aten::exp"]
    assert with_it["cost"]["bytes_out"] == with_it["cost"]["bytes_back"] == 96
    assert by_op["sin"].detail["fallback"]["off"]["cost"]["device"]["median_s"] > 0


def test_a_device_without_the_variable_is_run_once() -> None:
    (result,) = measure([unary("exp")], "cpu", {}).values()
    assert result.status == "native"
    assert "fallback" not in result.detail
