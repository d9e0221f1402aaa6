"""Values of the step are what a configuration is run with."""

from __future__ import annotations

import msgspec
import pytest
import torch

from scanner.backends.cpu import CpuDevice
from scanner.probe.execute import Options, run_case
from scanner.probe.inputs import drawn
from scanner.probe.plan import config_key
from scanner.probe.rebuild import Operands, Unbuildable
from scanner.probe.repro import repro_script
from scanner.probe.schema import schema_of
from scanner.probe.stress import resized
from scanner.records import OpCall
from tests.probe.num_support import QUICK, call, spec

TABLE = spec("weight", (7, 3))
PLAIN = {"padding_idx": -1, "scale_grad_by_freq": False, "sparse": False}
LOOKUP = call("aten::embedding", TABLE, spec("indices", (2, 2), "int64"), **PLAIN)


def holding(configuration: OpCall, **values: tuple[int, ...]) -> OpCall:
    named = {name.replace("__", "[") + "]" * ("__" in name): v for name, v in values.items()}
    return msgspec.structs.replace(configuration, values=named)


def operands(configuration: OpCall) -> Operands:
    return drawn(schema_of(configuration.op), configuration, 0)


def test_recorded_values_are_used_and_the_others_are_drawn_as_ever() -> None:
    with_values = operands(holding(LOOKUP, indices=(6, 0, 3, 3)))
    assert with_values.tensors[1].tolist() == [[6, 0], [3, 3]]
    assert torch.equal(with_values.tensors[0], operands(LOOKUP).tensors[0])


@pytest.mark.parametrize(
    "strange",
    [
        spec("indices", (2, 2), "int64", stride=(1, 2)),
        spec("indices", (2, 2), "int64", stride=(5, 2), offset=3),
        spec("indices", (2, 2), "int32"),
        spec("indices", (2, 2), "uint8"),
    ],
    ids=str,
)
def test_in_any_layout_and_dtype(strange: object) -> None:
    configuration = holding(call("aten::embedding", TABLE, strange), indices=(6, 0, 3, 1))  # type: ignore[arg-type]
    made = operands(configuration).tensors[1]
    assert made.tolist() == [[6, 0], [3, 1]]
    assert made.stride() == strange.stride  # type: ignore[attr-defined]


def test_expanded_and_overlapping_views_hold_them() -> None:
    expanded = call("aten::embedding", TABLE, spec("indices", (2, 3), "int64", stride=(0, 1)))
    assert operands(holding(expanded, indices=(4, 5, 6) * 2)).tensors[1].tolist() == [[4, 5, 6]] * 2
    sliding = call("aten::embedding", TABLE, spec("indices", (3, 2), "int64", stride=(1, 1)))
    values = (1, 2, 2, 3, 3, 4)
    made = operands(holding(sliding, indices=values)).tensors[1]
    assert tuple(made.reshape(-1).tolist()) == values


def test_a_mask_selects_as_many_as_the_step_had() -> None:
    """Drawn, the mask would select another number than there are values."""
    masked = call(
        "aten::index_put",
        *(spec(shape=(4,)), spec("indices[0]", (4,), "bool"), spec("values", (3,))),
        accumulate=False,
    )
    result = run_case(holding(masked, indices__0=(1, 0, 1, 1)), CpuDevice(), QUICK)
    assert (result.status, result.trial) == ("native", "captured")


def test_another_number_than_elements_is_no_verdict() -> None:
    with pytest.raises(Unbuildable, match="3 values were recorded for indices"):
        operands(holding(LOOKUP, indices=(1, 2, 3)))
    assert run_case(holding(LOOKUP, indices=(1,)), CpuDevice(), QUICK).status == "unknown"


def test_stress_alters_data_and_leaves_them() -> None:
    result = run_case(holding(LOOKUP, indices=(1, 2, 3, 4)), CpuDevice(), Options(stress=True))
    assert result.status == "native"
    assert result.trials[0] == "captured"
    assert len(result.trials) > 1


def test_they_belong_to_the_key_and_nothing_else_changes_it() -> None:
    keys = {
        config_key(LOOKUP),
        config_key(holding(LOOKUP, indices=(1, 2, 3, 4))),
        config_key(holding(LOOKUP, indices=(1, 2, 3, 5))),
    }
    assert len(keys) == 3
    assert config_key(msgspec.structs.replace(LOOKUP, values={})) == config_key(LOOKUP)


def test_a_script_holds_them() -> None:
    configuration = holding(LOOKUP, indices=(6, 0, 3, 3))
    result = run_case(configuration, CpuDevice(), QUICK)
    space: dict[str, object] = {"__name__": "repro"}
    exec(repro_script(configuration, result, "cpu").rpartition("sys.exit")[0], space)
    assert space["tensors"]("cpu", False)[1].tolist() == [[6, 0], [3, 3]]  # type: ignore[operator]


def test_another_size_has_none() -> None:
    added = call("aten::add.Tensor", spec(dtype="int64"), spec("other", dtype="int64"))
    held = holding(added, self=(1,) * 16)
    other = resized(schema_of(added.op), held, 9)
    assert other is not None
    assert other.values == {}
