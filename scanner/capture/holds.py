"""Makes the CPU and meta dispatch tables of this process decide as MPS does.

A composite op that a release registers for MPS is *held*: it gets a backend kernel here, so that
the dispatcher no longer decomposes it and autograd uses its own derivative formula
(`linear_backward` instead of `mm` and `sum`). Ops whose C++ body branches on the device type
(`lstm.input`, `rms_norm`, `scaled_dot_product_attention`) are given the MPS branch.

Kernels compute what the composite computes, by running the composite itself, so that the same code
serves meta tensors (shapes) and CPU tensors (values).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor

__all__ = ["held"]

_aten = torch.ops.aten
_BACKENDS = ("Meta", "CPU")
_AUTOGRAD = ("AutogradMeta", "AutogradCPU")
_Kernel = Callable[..., Any]


@contextmanager
def held(holds: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Holds the named ops; yields the names that the running torch does not know.

    Process-wide while active: the dispatcher has one table.
    """
    library = torch.library.Library("aten", "IMPL")
    missing = tuple(sorted(name for name in holds if not _install(library, name)))
    try:
        _install_branches(library, holds)
        yield missing
    finally:
        library._destroy()


def _install(library: torch.library.Library, name: str) -> bool:
    for op, kernel in _KERNELS.get(name, {}).items():
        if not hasattr(_aten, op.partition(".")[0]):
            return False
        _impl(library, op, kernel, _BACKENDS)
    return True


def _install_branches(library: torch.library.Library, holds: frozenset[str]) -> None:
    _impl(library, "one_hot", _one_hot, _BACKENDS + _AUTOGRAD)
    if "aten::_lstm_mps" in holds:
        _impl(library, "lstm.input", _lstm, _BACKENDS + _AUTOGRAD)
    if "aten::_fused_rms_norm" in holds and hasattr(_aten, "_fused_rms_norm"):
        _impl(library, "rms_norm", _rms_norm, _BACKENDS + _AUTOGRAD)
    if "aten::_scaled_dot_product_attention_math_for_mps" in holds:
        _impl(library, "scaled_dot_product_attention", _attention, _BACKENDS + _AUTOGRAD)


def _impl(library: torch.library.Library, op: str, kernel: _Kernel, keys: Sequence[str]) -> None:
    # Library.impl() refuses meta kernels for composite ops, since for most uses they are a
    # mistake; here undoing the composition is the purpose.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*Overriding a previously registered kernel")
        for key in keys:
            cast(Any, library).m.impl(op, key, kernel, False)


def _composite(op: Any, *args: Any, **kwargs: Any) -> Any:
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
    return cast(Tensor, _composite(_aten.mish_backward.default, grad_output, self))


def _lu_factor(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor]:
    lu, pivots, _ = torch.linalg.lu_factor_ex(A, pivot=pivot)
    return lu, pivots


def _fused_rms_norm(
    input: Tensor, normalized_shape: list[int], weight: Tensor | None, eps: float | None
) -> tuple[Tensor, Tensor]:
    return cast(
        "tuple[Tensor, Tensor]",
        _composite(_aten._fused_rms_norm.default, input, normalized_shape, weight, eps),
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
    return (
        rstd * (scaled - input * rstd * rstd * inner) if output_mask[0] else None,
        (grad_out * input * rstd).sum(outer) if output_mask[1] and weight is not None else None,
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
    output, hy, cy = _composite(_aten.lstm.input, input, hx, params, *flags)
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
) -> tuple[Tensor, Tensor]:
    return cast(
        "tuple[Tensor, Tensor]",
        _aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, dropout_mask,
            scale=scale, enable_gqa=key.shape[-3:-2] != query.shape[-3:-2],
        ),
    )  # fmt: skip


def _lstm(input: Tensor, hx: list[Tensor], params: list[Tensor], *flags: Any) -> Any:
    """`at::native::lstm` on MPS: one kernel for all layers and time steps."""
    return _aten._lstm_mps(input, hx, params, *flags)[:3]


def _rms_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """`at::native::rms_norm` on MPS: fused, except with a weight where a gradient is needed."""
    fused = _aten._fused_rms_norm.default
    if _needs_composite_norm(input, weight):
        return cast(Tensor, _composite(fused, input, normalized_shape, weight, eps)[0])
    return cast(Tensor, fused(input, normalized_shape, weight, eps)[0])


def _needs_composite_norm(input: Tensor, weight: Tensor | None) -> bool:
    channels_last = input.dim() in (4, 5) and not input.is_contiguous() and _channels_last(input)
    mixed = weight is not None and weight.dtype != input.dtype
    return (
        channels_last
        or input.is_complex()
        or mixed
        or (weight is not None and _wants_gradient(input, weight))
    )


def _channels_last(tensor: Tensor) -> bool:
    form = torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d
    return tensor.is_contiguous(memory_format=form)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`at::native::scaled_dot_product_attention` on MPS: one kernel, in inference only."""
    inputs = (query, key, value)
    if dropout_p or _wants_gradient(*inputs) or any(x.is_nested for x in inputs):
        return cast(
            Tensor,
            _composite(
                _aten.scaled_dot_product_attention.default, query, key, value, attn_mask,
                dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa,
            ),
        )  # fmt: skip
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(
            attn_mask.logical_not(), float("-inf")
        )
    kernel = _aten._scaled_dot_product_attention_math_for_mps
    return cast(
        Tensor,
        kernel(query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale)[0],
    )


def _one_hot(self: Tensor, num_classes: int = -1) -> Tensor:
    """`at::native::one_hot` on MPS: indices are not checked against the number of classes."""
    if num_classes == -1:
        num_classes = int(self.max().item()) + 1
    result = torch.zeros((*self.shape, num_classes), dtype=self.dtype, device=self.device)
    return result.scatter_(-1, self.unsqueeze(-1), 1)


def _wants_gradient(*tensors: Tensor) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


_KERNELS: dict[str, dict[str, _Kernel]] = {
    "aten::_fused_rms_norm": {
        "_fused_rms_norm": _fused_rms_norm,
        "_fused_rms_norm_backward": _fused_rms_norm_backward,
    },
    "aten::_lstm_mps": {"_lstm_mps": _lstm_mps, "lstm_mps_backward": _lstm_mps_backward},
    "aten::_scaled_dot_product_attention_math_for_mps": {
        "_scaled_dot_product_attention_math_for_mps": _attention_math_for_mps
    },
    "aten::linalg_lu_factor": {"linalg_lu_factor": _lu_factor},
    "aten::linear": {"linear": _linear, "linear_backward": _linear_backward},
    "aten::max_pool2d": {"max_pool2d": _max_pool2d, "max_pool2d_backward": _max_pool2d_backward},
    "aten::mish_backward": {"mish_backward": _mish_backward},
}
