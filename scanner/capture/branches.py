"""Composite ops whose C++ body takes another branch on MPS, with that branch.

Read off the calls and comparisons with the device type in each release's `at::native` functions.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from scanner.capture.kernels import composite
from scanner.capture.lowering import (
    DENSE_ATTENTION,
    DROPOUT,
    EMPTY_NORM,
    FLOAT_TOLERANCE,
    ONE_HOT,
)

__all__ = ["BRANCHES", "UNCHECKED"]

_aten = torch.ops.aten


def _lstm(input: Tensor, hx: list[Tensor], params: list[Tensor], *flags: Any) -> Any:
    """`at::native::lstm` on MPS: one kernel for all layers and time steps."""
    return _aten._lstm_mps(input, hx, params, *flags)[:3]


def _rms_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """`at::native::rms_norm` on MPS: fused with a weight where no gradient is needed.

    Executed by 2.8.0 to 2.15.0: without a weight all of them compose it.
    """
    fused = _aten._fused_rms_norm.default
    if _needs_composite_norm(input, weight):
        return cast(Tensor, composite(fused, input, normalized_shape, weight, eps)[0])
    return cast(Tensor, fused(input, normalized_shape, weight, eps)[0])


def _needs_composite_norm(input: Tensor, weight: Tensor | None) -> bool:
    if weight is None or weight.dtype != input.dtype or input.is_complex():
        return True
    permuted = input.dim() in (4, 5) and not input.is_contiguous() and _channels_last(input)
    return permuted or _wants_gradient(input, weight)


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
            composite(
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


def _attention_of_dense(
    query: Tensor, key: Tensor, value: Tensor, *flags: Any, **options: Any
) -> Tensor:
    """As `_attention`, where the kernel takes contiguous tensors only."""
    if all(tensor.is_contiguous() for tensor in (query, key, value)):
        return _attention(query, key, value, *flags, **options)
    op = _aten.scaled_dot_product_attention.default
    return cast(Tensor, composite(op, query, key, value, *flags, **options))


def _pinv(
    self: Tensor, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False
) -> Tensor:
    """`at::native::linalg_pinv` on MPS: tolerances in float32 instead of float64."""
    limits = _tolerances(self, atol, rtol)
    return cast(Tensor, _aten.linalg_pinv.atol_rtol_tensor(self, **limits, hermitian=hermitian))


def _matrix_rank(
    input: Tensor, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False
) -> Tensor:
    """`at::native::linalg_matrix_rank` on MPS, likewise."""
    limits = _tolerances(input, atol, rtol)
    rank = _aten.linalg_matrix_rank.atol_rtol_tensor
    return cast(Tensor, rank(input, **limits, hermitian=hermitian))


def _matrix_rank_within(
    input: Tensor,
    *,
    atol: Tensor | None = None,
    rtol: Tensor | None = None,
    hermitian: bool = False,
) -> Tensor:
    """The same with tolerances in tensors, of which any may be missing."""
    rank = _aten.linalg_matrix_rank.atol_rtol_tensor
    if atol is None:
        atol = torch.zeros((), dtype=torch.float32, device=input.device)
    if rtol is None:
        precision = torch.finfo(input.dtype).eps * max(input.shape[-2:])
        rtol = torch.full((), precision, dtype=torch.float32, device=input.device)
        rtol = torch.where(atol > 0, torch.zeros_like(rtol), rtol)
    return cast(Tensor, composite(rank, input, atol=atol, rtol=rtol, hermitian=hermitian))


def _matrix_rank_of(self: Tensor, tol: float, hermitian: bool = False) -> Tensor:
    """The same with one absolute tolerance."""
    return _matrix_rank(self, atol=tol, rtol=0.0, hermitian=hermitian)


def _tolerances(matrix: Tensor, atol: float | None, rtol: float | None) -> dict[str, Tensor]:
    if rtol is None:
        precision = torch.finfo(matrix.dtype).eps * max(matrix.shape[-2:])
        rtol = 0.0 if atol is not None and atol > 0 else precision
    return {
        name: torch.full((), value, dtype=torch.float32, device=matrix.device)
        for name, value in (("atol", atol or 0.0), ("rtol", rtol))
    }


def _batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, *others: Any) -> Any:
    """`at::native::_batch_norm_impl_index` on MPS: nothing to norm keeps float32, not float64."""
    if input.numel():
        index = _aten._batch_norm_impl_index.default
        return composite(index, input, weight, bias, *others)
    result = input.clone()
    result = result if weight is None else result * weight[0]
    result = result if bias is None else result + bias[0]
    saved = [input.new_empty(0, dtype=torch.float32) for _ in range(2)]
    return result, *saved, input.new_empty(0, dtype=torch.uint8), 0


def _one_hot_checked(self: Tensor, num_classes: int = -1) -> Tensor:
    """`at::native::one_hot` on MPS from 2.12 on; the host reads both extremes back."""
    if self.numel():
        torch.aminmax(self)
    return _one_hot(self, num_classes)


def _ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """`at::native::ctc_loss` with lengths in tensors: they are read on the host first.

    Under a dispatch mode torch keeps them on the device; without values the longest are assumed.
    """
    batch = log_probs.shape[1] if log_probs.dim() == 3 else 1
    longest = targets.shape[-1] if targets.dim() == 2 else targets.numel() // batch
    lengths = (
        _lengths(input_lengths, log_probs.shape[0], batch),
        _lengths(target_lengths, longest, batch),
    )
    return cast(
        Tensor,
        _aten.ctc_loss.IntList(log_probs, targets, *lengths, blank, reduction, zero_infinity),
    )


def _lengths(lengths: Tensor, longest: int, batch: int) -> list[int]:
    with torch._C.DisableTorchFunction():
        return [longest] * batch if lengths.is_meta else [int(n) for n in lengths.tolist()]


def _dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`at::native::dropout` on MPS from 2.15 on: one op for dense half, bfloat16 and float32."""
    dense = input.layout == torch.strided
    fused = input.dtype in (torch.float16, torch.bfloat16, torch.float32)
    if train and 0 < p < 1 and input.numel() and dense and fused:
        return cast(Tensor, _aten.native_dropout(input, p, train)[0])
    return cast(Tensor, composite(_aten.dropout.default, input, p, train))


def _one_hot(self: Tensor, num_classes: int = -1) -> Tensor:
    """`at::native::one_hot` on MPS: indices are not checked against the number of classes."""
    if num_classes == -1:
        num_classes = int(self.max().item()) + 1
    result = torch.zeros((*self.shape, num_classes), dtype=self.dtype, device=self.device)
    return result.scatter_(-1, self.unsqueeze(-1), 1)


def _wants_gradient(*tensors: Tensor) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


BRANCHES: dict[str, tuple[str, Any]] = {
    "lstm.input": ("aten::_lstm_mps", _lstm),
    "ctc_loss.Tensor": ("", _ctc_loss),
    "dropout": (DROPOUT, _dropout),
    "_batch_norm_impl_index": (EMPTY_NORM, _batch_norm),
    "linalg_matrix_rank": (FLOAT_TOLERANCE, _matrix_rank_of),
    "linalg_matrix_rank.atol_rtol_float": (FLOAT_TOLERANCE, _matrix_rank),
    "linalg_matrix_rank.atol_rtol_tensor": (FLOAT_TOLERANCE, _matrix_rank_within),
    "linalg_pinv.atol_rtol_float": (FLOAT_TOLERANCE, _pinv),
    "one_hot": ("", _one_hot_checked),
    "rms_norm": ("aten::_fused_rms_norm", _rms_norm),
    "scaled_dot_product_attention": (
        "aten::_scaled_dot_product_attention_math_for_mps",
        _attention,
    ),
}
"""Overload → what a release must hold for it to take the branch (empty: all do)."""
UNCHECKED: dict[str, tuple[str, Any]] = {
    "one_hot": (ONE_HOT, _one_hot),
    "scaled_dot_product_attention": (DENSE_ATTENTION, _attention_of_dense),
}
"""Branches that replace one of `BRANCHES` in a release that holds their mark."""
