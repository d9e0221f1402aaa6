"""Kernels of ops that MPS runs whole and other backends decompose.

Each computes what the composite computes, by running the composite, so that one serves meta tensors
(shapes) as well as CPU tensors (values).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

__all__ = ["KERNELS", "composite"]

_aten = torch.ops.aten
_Kernel = Callable[..., Any]


def composite(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Runs the decomposition of an op, whatever backend kernels it has."""
    return op._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    result = torch.matmul(input, weight.t())
    return result if bias is None else result + bias


def _linear_backward(
    self: Tensor, grad_output: Tensor, weight: Tensor, output_mask: list[bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    rows = grad_output.reshape(-1, grad_output.shape[-1])
    return (
        torch.matmul(grad_output, weight) if output_mask[0] else None,
        rows.t() @ self.reshape(-1, self.shape[-1]) if output_mask[1] else None,
        rows.sum(0) if output_mask[2] else None,
    )


def _max_pool2d(
    self: Tensor,
    kernel_size: list[int],
    stride: list[int] = [],  # noqa: B006  (the schema's default; never mutated)
    padding: list[int] = [0],  # noqa: B006
    dilation: list[int] = [1],  # noqa: B006
    ceil_mode: bool = False,
) -> Tensor:
    return cast(
        Tensor,
        _aten.max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0],
    )


def _max_pool2d_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: list[int],
    stride: list[int] = [],  # noqa: B006
    padding: list[int] = [0],  # noqa: B006
    dilation: list[int] = [1],  # noqa: B006
    ceil_mode: bool = False,
) -> Tensor:
    window = (kernel_size, stride, padding, dilation, ceil_mode)
    indices = _aten.max_pool2d_with_indices(self, *window)[1]
    return cast(Tensor, _aten.max_pool2d_with_indices_backward(grad_output, self, *window, indices))


def _mish_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    return cast(Tensor, composite(_aten.mish_backward.default, grad_output, self))


def _lu_factor(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor]:
    lu, pivots, _ = torch.linalg.lu_factor_ex(A, pivot=pivot)
    return lu, pivots


def _fused_rms_norm(
    input: Tensor, normalized_shape: list[int], weight: Tensor | None, eps: float | None
) -> tuple[Tensor, Tensor]:
    return cast(
        "tuple[Tensor, Tensor]",
        composite(_aten._fused_rms_norm.default, input, normalized_shape, weight, eps),
    )


def _fused_rms_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: list[int],
    rstd: Tensor,
    weight: Tensor | None,
    output_mask: list[bool],
) -> tuple[Tensor | None, Tensor | None]:
    """d/dx of x·r·w with r = rsqrt(mean(x²)+eps): r·(g·w − x·r²·mean(x·g·w))."""
    axes = list(range(-len(normalized_shape), 0))
    scaled = grad_out if weight is None else grad_out * weight
    inner = (input * scaled).mean(axes, keepdim=True)
    outer = list(range(input.dim() - len(normalized_shape)))
    product = grad_out * input * rstd
    by_weight = product.sum(outer) if outer else product
    return (
        rstd * (scaled - input * rstd * rstd * inner) if output_mask[0] else None,
        by_weight if output_mask[1] and weight is not None else None,
    )


def _lstm_mps(
    input: Tensor,
    hx: list[Tensor],
    params: list[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """Output and states of the composite; the three saved buffers have MPS' sizes, not its data."""
    flags = (has_biases, num_layers, dropout, train, bidirectional, batch_first)
    output, hy, cy = composite(_aten.lstm.input, input, hx, params, *flags)
    time, batch = (input.shape[1], input.shape[0]) if batch_first else input.shape[:2]
    width = hx[0].shape[-1] * (2 if bidirectional else 1)
    saved = input.new_zeros((num_layers, time, batch, 4 * width))
    cells = input.new_zeros((num_layers, time, batch, width))
    return output, hy, cy, saved, cells, cells.clone()


def _lstm_mps_backward(
    grad_y: Tensor | None,
    grad_hy: Tensor | None,
    grad_cy: Tensor | None,
    z_state: Tensor,
    cell_state_fwd: Tensor,
    input: Tensor,
    layersOutputs: Tensor,
    hx: list[Tensor],
    params: list[Tensor],
    *flags: Any,
) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Shapes only: values would need the buffers that only MPS fills."""
    return (
        torch.zeros_like(input),
        [torch.zeros_like(state) for state in hx],
        [torch.zeros_like(param) for param in params],
    )


def _attention_math_for_mps(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Tensor | None = None,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    return cast(
        "tuple[Tensor, Tensor]",
        _aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, dropout_mask,
            scale=scale, enable_gqa=enable_gqa or key.shape[-3:-2] != query.shape[-3:-2],
        ),
    )  # fmt: skip


KERNELS: dict[str, dict[str, _Kernel]] = {
    "aten::_fused_rms_norm": {
        "_fused_rms_norm": _fused_rms_norm,
        "_fused_rms_norm_backward": _fused_rms_norm_backward,
    },
    "aten::_lstm_mps": {"_lstm_mps": _lstm_mps, "lstm_mps_backward": _lstm_mps_backward},
    "aten::_scaled_dot_product_attention_math_for_mps": {
        "_scaled_dot_product_attention_math_for_mps": _attention_math_for_mps
    },
    "aten::linalg_lu_factor": {"linalg_lu_factor": _lu_factor},
    "aten::linalg_svd": {"linalg_svd": partial(composite, _aten.linalg_svd.default)},
    "aten::upsample_nearest3d.vec": {
        "upsample_nearest3d.vec": partial(composite, _aten.upsample_nearest3d.vec)
    },
    "aten::linear": {"linear": _linear, "linear_backward": _linear_backward},
    "aten::max_pool2d": {"max_pool2d": _max_pool2d, "max_pool2d_backward": _max_pool2d_backward},
    "aten::mish_backward": {"mish_backward": _mish_backward},
}
"""Held op → the overloads that get a kernel with it."""
