"""Ops that only MPS has: each runs on any device, and its values are judged."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from scanner.backends.cpu import CpuDevice
from scanner.probe.execute import Options, run_case
from scanner.probe.schema import schema_of
from scanner.probe.standards import standard_of
from scanner.probe.substitutes import SUBSTITUTES
from scanner.records import OpCall, TensorSpec
from tests.probe.num_support import Spoiled, call, in_place, spec

ONCE = Options(repeats=0)
WINDOW = {"kernel_size": [2, 2], "stride": [2, 2], "padding": [0, 0], "dilation": [1, 1]}
CONV = {"padding": [1, 1], "stride": [1, 1], "dilation": [1, 1], "groups": 1}
TRANSPOSED = {**CONV, "output_padding": [0, 0]}
IMAGE, OUT, WEIGHT = (1, 2, 5, 5), (1, 3, 5, 5), (3, 2, 3, 3)


def lstm(dropout: float, layers: int, *, backward: bool) -> OpCall:
    """Hidden size 4, input 3, 5 steps of 2 sequences; shapes as MPS saves them."""
    weights = [
        spec(f"params[{4 * layer + place}]", shape)
        for layer in range(layers)
        for place, shape in enumerate(((16, 4 if layer else 3), (16, 4), (16,), (16,)))
    ]
    source = spec("input", (5, 2, 3))
    states = [spec(f"hx[{place}]", (layers, 2, 4)) for place in range(2)]
    saved = [
        spec(name, (layers, 5, 2, width))
        for name, width in (("z_state", 16), ("cell_state_fwd", 4), ("layersOutputs", 4))
    ]
    flags = {
        "has_biases": True,
        "num_layers": layers,
        "dropout": dropout,
        "train": True,
        "bidirectional": False,
        "batch_first": False,
    }
    if not backward:
        return call("aten::_lstm_mps", source, *states, *weights, **flags)
    first, second, third = saved
    inputs: tuple[TensorSpec, ...] = (
        spec("grad_y", (5, 2, 4)), first, second, source, third, *states, *weights,
    )  # fmt: skip
    op = "aten::lstm_mps_backward"
    return call(op, *inputs, phase="backward", grad_hy=None, grad_cy=None, **flags)


CONFIGURATIONS = [
    call(
        "aten::_fused_rms_norm_backward",
        spec("grad_out", (3, 4)), spec("input", (3, 4)), spec("rstd", (3, 1)),
        spec("weight", (4,)),
        phase="backward", normalized_shape=[4], output_mask=[True, True],
    ),
    lstm(0.0, 2, backward=False),
    lstm(0.3, 2, backward=False),
    lstm(0.3, 1, backward=False),
    lstm(0.0, 2, backward=True),
    lstm(0.3, 2, backward=True),
    call(
        "aten::_mps_convolution",
        spec("self", IMAGE), spec("weight", WEIGHT), spec("bias", (3,)), **CONV,
    ),
    call(
        "aten::_mps_convolution_transpose",
        spec("self", OUT), spec("weight", WEIGHT), **TRANSPOSED,
    ),
    call(
        "aten::_scaled_dot_product_attention_math_for_mps",
        spec("query", (1, 2, 3, 4)), spec("key", (1, 2, 5, 4)), spec("value", (1, 2, 5, 4)),
        attn_mask=None, dropout_p=0.0, is_causal=False, dropout_mask=None, scale=None,
        enable_gqa=False,
    ),
    call(
        "aten::linear_backward",
        spec("self", (3, 4)), spec("grad_output", (3, 2)), spec("weight", (2, 4)),
        phase="backward", output_mask=[True, True, True],
    ),
    call(
        "aten::max_pool2d_backward",
        spec("grad_output", (1, 2, 2, 2)), spec("self", (1, 2, 4, 4)),
        phase="backward", ceil_mode=False, **WINDOW,
    ),
    call(
        "aten::mps_convolution_backward",
        spec("self", IMAGE), spec("grad_output", OUT), spec("weight", WEIGHT),
        phase="backward", output_mask=[True, True, True], **CONV,
    ),
    call(
        "aten::mps_convolution_transpose_backward",
        spec("self", OUT), spec("grad_output", IMAGE), spec("weight", WEIGHT),
        phase="backward", output_mask=[True, True], **TRANSPOSED,
    ),
]  # fmt: skip


def test_every_such_op_has_a_configuration_here() -> None:
    assert {configuration.op for configuration in CONFIGURATIONS} == set(SUBSTITUTES)


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=lambda c: c.op)
def test_it_passes_and_its_values_are_compared(configuration: OpCall) -> None:
    result = run_case(configuration, CpuDevice(), ONCE)
    assert (result.status, result.reason) == ("native", "")
    assert result.outputs
    assert (result.gradient is None) == (configuration.phase == "backward")


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=lambda c: c.op)
def test_wrong_values_are_found(configuration: OpCall) -> None:
    double: Callable[[Tensor], Tensor] = lambda x: x * 2 + 1  # noqa: E731
    assert run_case(configuration, Spoiled(in_place(double)), ONCE).status == "wrong"


@pytest.mark.parametrize("backward", [True, False])
def test_dropout_between_layers_is_switched_off_to_compare_values(backward: bool) -> None:
    dropping = lstm(0.3, 2, backward=backward)
    assert standard_of(schema_of(dropping.op), dropping).kind == "random"
    assert run_case(dropping, CpuDevice(), ONCE).trials == ("drawn", "without dropout")
    # There is nothing between the only layer and the next.
    single = lstm(0.3, 1, backward=backward)
    assert standard_of(schema_of(single.op), single).compares_values
    assert run_case(single, CpuDevice(), ONCE).trials == ("drawn",)


def test_a_device_that_fails_with_dropout_only_is_found() -> None:
    class Failing(CpuDevice):
        def call(self, op, args, kwargs):
            if 0.3 in args:
                raise NotImplementedError("no dropout")
            return super().call(op, args, kwargs)

    result = run_case(lstm(0.3, 2, backward=False), Failing(), ONCE)
    assert (result.status, result.trial) == ("unsupported", "drawn")


def test_gradients_of_what_is_compared_are_those_of_autograd() -> None:
    result = run_case(lstm(0.3, 2, backward=False), CpuDevice(), ONCE)
    assert result.gradient is not None
    assert len(result.gradient.outputs) == 1 + 2 + 8
    assert torch.is_grad_enabled()
