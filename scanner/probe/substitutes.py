"""CPU references for ops that only a device has: what each computes, in terms of ops that torch
has everywhere.

Keys are qualified overloads. Outputs that hold a device's private state are listed in
`standards.PRIVATE_OUTPUTS` and never compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from scanner.capture.kernels import KERNELS

__all__ = ["DEVICE_SAVED", "SUBSTITUTES"]

_aten = torch.ops.aten
_HELD = {op: kernel for held in KERNELS.values() for op, kernel in held.items()}
"""What stands in for these ops while a step is captured computes the same values."""


def _convolution(
    self: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Any:
    zeros = [0] * len(stride)
    return _aten.convolution(self, weight, bias, stride, padding, dilation, False, zeros, groups)


def _convolution_transpose(
    self: Tensor,
    weight: Tensor,
    padding: Sequence[int],
    output_padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Any:
    return _aten.convolution(
        self, weight, None, stride, padding, dilation, True, output_padding, groups
    )


def _convolution_backward(
    self: Tensor,
    grad_output: Tensor,
    weight: Tensor,
    padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    zeros = [0] * len(stride)
    return _aten.convolution_backward(
        grad_output, self, weight, [weight.shape[0]], stride, padding, dilation, False, zeros,
        groups, output_mask,
    )  # fmt: skip


def _convolution_transpose_backward(
    self: Tensor,
    grad_output: Tensor,
    weight: Tensor,
    padding: Sequence[int],
    output_padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    return _aten.convolution_backward(
        grad_output, self, weight, None, stride, padding, dilation, True, output_padding, groups,
        [*output_mask, False],
    )[:2]  # fmt: skip


def _lstm(input: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], *flags: Any) -> Any:
    """Output and states; the saved buffers are MPS' own."""
    return _aten.lstm.input(input, hx, params, *flags)


def _lstm_backward(
    grad_y: Tensor | None,
    grad_hy: Tensor | None,
    grad_cy: Tensor | None,
    z_state: Tensor,  # noqa: ARG001  (the schema's arguments, used or not)
    cell_state_fwd: Tensor,  # noqa: ARG001
    input: Tensor,
    layersOutputs: Tensor,  # noqa: ARG001, N803
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    *flags: Any,
) -> Any:
    """Gradients by autograd through the composite: the saved buffers are not needed for them."""
    leaves = [tensor.detach().requires_grad_() for tensor in (input, *hx, *params)]
    states, weights = leaves[1 : 1 + len(hx)], leaves[1 + len(hx) :]
    with torch.enable_grad():
        outputs = _aten.lstm.input(leaves[0], states, weights, *flags)
    known = [
        (o, g) for o, g in zip(outputs, (grad_y, grad_hy, grad_cy), strict=True) if g is not None
    ]
    gradients = torch.autograd.grad(
        [output for output, _ in known],
        leaves,
        [gradient for _, gradient in known],
        allow_unused=True,
        materialize_grads=True,
    )
    return gradients[0], list(gradients[1 : 1 + len(hx)]), list(gradients[1 + len(hx) :])


SUBSTITUTES: MappingProxyType[str, Callable[..., Any]] = MappingProxyType(
    {
        "aten::_fused_rms_norm_backward": _HELD["_fused_rms_norm_backward"],
        "aten::_lstm_mps": _lstm,
        "aten::_mps_convolution": _convolution,
        "aten::_mps_convolution_transpose": _convolution_transpose,
        "aten::_scaled_dot_product_attention_math_for_mps": _HELD[
            "_scaled_dot_product_attention_math_for_mps"
        ],
        "aten::linear_backward": _HELD["linear_backward"],
        "aten::lstm_mps_backward": _lstm_backward,
        "aten::max_pool2d_backward": _HELD["max_pool2d_backward"],
        "aten::mps_convolution_backward": _convolution_backward,
        "aten::mps_convolution_transpose_backward": _convolution_transpose_backward,
    }
)

DEVICE_SAVED: MappingProxyType[str, tuple[str, MappingProxyType[str, int]]] = MappingProxyType(
    {
        "aten::lstm_mps_backward": (
            "aten::_lstm_mps",
            MappingProxyType({"z_state": 3, "cell_state_fwd": 4, "layersOutputs": 5}),
        )
    }
)
"""Backward op → the forward op that must run on the device first, and which of its outputs become
which arguments. The forward takes the backward's arguments of the same names."""
