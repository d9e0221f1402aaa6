"""Gradients of one op: which are taken, and that a wrong one is found and named."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from scanner.backends.cpu import CpuDevice
from scanner.probe.execute import run_case
from scanner.probe.outcome import CaseResult
from scanner.records import OpCall
from tests.probe.num_support import Accurate, Spoiled, call, mm, spec

NORM = call(
    "aten::native_layer_norm",
    spec("input", (6, 8)),
    spec("weight", (8,)),
    spec("bias", (8,)),
    normalized_shape=[8],
    eps=1e-5,
)


def steeper(factor: float) -> Spoiled:
    """A device whose backward kernels give too large gradients."""

    def spoil(tensor: Tensor) -> Tensor:
        if tensor.requires_grad:
            tensor.register_hook(lambda gradient: gradient * factor)
        return tensor

    return Spoiled(spoil, gradients=True)


def differentiated(result: CaseResult) -> list[str]:
    assert result.gradient is not None
    return [output.name for output in result.gradient.outputs]


def test_every_floating_input_is_differentiated() -> None:
    result = run_case(NORM, CpuDevice())
    assert result.status == "native"
    assert differentiated(result) == ["grad of input", "grad of weight", "grad of bias"]


def test_arguments_without_a_derivative_are_left_out() -> None:
    inputs = spec(shape=(5,)), spec("target", (5,))
    result = run_case(call("aten::soft_margin_loss", *inputs, reduction=1), CpuDevice())
    assert differentiated(result) == ["grad of self"]


@pytest.mark.parametrize(
    "configuration",
    [
        call("aten::eq.Tensor", spec(), spec("other")),
        call("aten::floor", spec(dtype="int64")),
        call("aten::tanh_backward", spec("grad_output"), spec("output")),
        call("aten::mul.Tensor", spec(), spec("other"), phase="optimizer"),
        call("aten::mul.out", spec(), spec("other"), spec("out")),
        call("aten::linalg_qr", spec("A"), mode="reduced"),
    ],
    ids=lambda c: c.op,
)
def test_what_no_step_differentiates_has_no_gradient(configuration: OpCall) -> None:
    result = run_case(configuration, CpuDevice())
    assert result.status == "native"
    assert result.gradient is None


def test_an_in_place_op_is_differentiated_through_a_copy() -> None:
    result = run_case(call("aten::mul_.Tensor", spec(), spec("other")), CpuDevice())
    assert differentiated(result) == ["grad of self", "grad of other"]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("factor", [1.01, 1.5])
def test_a_scaled_gradient_is_found(dtype: str, factor: float) -> None:
    result = run_case(mm(dtype), steeper(factor))
    assert result.status == "wrong"
    assert result.reason.startswith("its gradient: output grad of self")
    assert result.gradient is not None
    assert result.gradient.outputs[0].bias == pytest.approx(factor - 1, rel=0.2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_in_higher_precision_are_right(dtype: torch.dtype) -> None:
    device = Accurate({dtype: torch.float32})
    for configuration in (NORM, mm(str(dtype)[6:])):
        assert run_case(configuration, device).status == "native"


def test_a_backward_that_the_device_lacks_is_unsupported() -> None:
    class Forward(CpuDevice):
        def call(self, op, args, kwargs):
            if torch.is_grad_enabled():
                raise NotImplementedError("no backward kernel")
            return super().call(op, args, kwargs)

    result = run_case(mm(), Forward())
    assert result.status == "unsupported"
    assert result.reason.startswith("its gradient: the device has no kernel for it")


def test_a_missing_gradient_is_wrong() -> None:
    detached = Spoiled(lambda tensor: tensor.detach(), gradients=True)
    result = run_case(mm(), detached)
    assert result.status == "wrong"
    assert {d.kind for d in result.detections} == {"missing-output"}


I1 = call("aten::special_i1", spec(dtype="bfloat16"))


def test_a_gradient_that_the_cpu_lacks_is_said_not_to_be_checked() -> None:
    result = run_case(I1, CpuDevice())
    assert result.status == "native"
    assert result.reason.startswith("its gradient is not checked: the CPU has none")
    assert result.gradient is not None
    assert result.gradient.status == "skipped"


def test_a_wrong_result_stays_wrong_where_its_gradient_is_not_checked() -> None:
    result = run_case(I1, Spoiled(lambda tensor: tensor * 1.5))
    assert result.status == "wrong"


def test_an_op_that_torch_never_differentiates_has_no_gradient() -> None:
    result = run_case(call("aten::heaviside", spec(), spec("values")), CpuDevice())
    assert (result.status, result.reason, result.gradient) == ("native", "", None)


def test_one_argument_without_a_derivative_does_not_hide_the_other() -> None:
    # d/dx P(a, x) is known, d/da is not.
    result = run_case(call("aten::igamma", spec(), spec("other")), CpuDevice())
    assert differentiated(result) == ["grad of other"]


def test_gradients_that_add_up_are_held_against_double_precision() -> None:
    # 17 · 9 copies of a corner: their sum in bfloat16 is off by several per cent on the CPU.
    padded = call("aten::replication_pad2d", spec(shape=(1, 3, 3), dtype="bfloat16"))
    padded = call(padded.op, *padded.inputs, padding=[16, 0, 8, 0])
    result = run_case(padded, Accurate({torch.bfloat16: torch.float32}))
    assert result.status == "native", result.reason
    assert result.gradient is not None
    assert all(output.raised for output in result.gradient.outputs)
