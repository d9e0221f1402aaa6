"""Reported bugs of torch's MPS backend: a call that shows each, releases with and without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

Given = tuple[Any, ...]
Seen = Literal["wrong", "raises", "fallback", "misshapen"]
NAN = float("nan")
_SDPA = "aten::_scaled_dot_product_attention_math_for_mps"


@dataclass(frozen=True)
class Bug:
    """A call; what becomes of it in the release that is affected, and where it agrees again."""

    report: str
    """Name in the collection of bug reports; several reports may be about one bug."""
    op: str
    given: Callable[[], Given]
    affected: tuple[str, str]
    """Release and macOS version."""
    fixed: tuple[str, str]
    seen: Seen = "wrong"
    named: dict[str, Any] = field(default_factory=dict)
    on_host: tuple[int, ...] = ()
    """Places of arguments that stay on the CPU."""
    then: str = ""
    """An op that is applied to the result, where that is only a view."""
    reference: Callable[..., Any] | None = None
    """For ops that the CPU lacks."""
    outputs: int = 9
    """How many of them are compared."""


def wave(*shape: int) -> Tensor:
    """Distinct small numbers of both signs."""
    count = torch.Size(shape).numel()
    return (torch.arange(count) * 0.37 - 2).sin().reshape(shape) * 2


def _complex(*shape: int) -> Tensor:
    return torch.complex(wave(*shape), wave(*shape) + 1)


def _places() -> Given:
    return wave(3, 4).t(), 0, torch.tensor([0, 2]), wave(3, 2).t()


def _nan_query() -> Given:
    query = wave(1, 1, 4, 64) + 0.1
    query[0, 0, 1, 3] = NAN
    return query, wave(1, 1, 4, 64), wave(1, 1, 4, 64)


def _permuted(batch: int) -> Given:
    whole = [(wave(batch, 4, 3, 64) + place / 10).cos() for place in range(3)]
    return tuple(each.transpose(1, 2) for each in whole)


def _attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """By its formula: the CPU's own kernel drops NaN too."""
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    return scores.softmax(-1) @ value


def _values(*given: int) -> Tensor:
    return torch.tensor(given)


def _channels_last() -> Tensor:
    return wave(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)


def _on(old: str, new: str, macos: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (old, macos), (new, macos)


_SMALL = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
_RIGHT = torch.tensor([[1.0], [2.0]])

WRONG = (
    Bug("conj-einsum-177474", "aten::bmm", lambda: (_complex(1, 2, 2).conj(), _complex(1, 2, 2)),
        *_on("2.10.0", "2.11.0", "14.5")),
    Bug("conj-imag-184379", "aten::imag", lambda: (_complex(4).conj(),),
        *_on("2.12.1", "2.13.0", "15.5"), then="aten::clone"),
    Bug("layernorm-smallvar", "aten::native_layer_norm",
        lambda: (torch.tensor([[1e-4, 2e-4, 3e-4, 4e-4]]), [4], None, None, 1e-12),
        *_on("2.13.0", "2.14.0", "14.5")),
    Bug("layernorm-mixed-dtype", "aten::native_layer_norm",
        lambda: (wave(2, 8).half(), [8], wave(8).abs() + 0.5, wave(8), 1e-5),
        *_on("2.13.0", "2.14.0", "14.5"), outputs=1),
    Bug("lu_factor-singular", "aten::linalg_lu_factor_ex",
        lambda: (torch.tensor([[1.0, 2.0], [2.0, 4.0]]),), *_on("2.8.0", "2.10.0", "14.5")),
    Bug("sum-saturate", "aten::sum.dim_IntList",
        lambda: (torch.full((10,), 100, dtype=torch.uint8), [0]),
        *_on("2.12.1", "2.13.0", "14.5"), named={"dtype": torch.uint8}),
    Bug("maximum-nan-143976", "aten::maximum",
        lambda: (torch.tensor([NAN, 1, 2]), torch.tensor([0, NAN, 3])),
        *_on("2.6.0", "2.7.1", "14.5")),
    Bug("fmax-mixed", "aten::fmax",
        lambda: (torch.tensor([1.0, 2.0, 3.0]), torch.tensor([2.0, 1.0, 4.0]).half()),
        *_on("2.7.1", "2.8.0", "14.5")),
    Bug("masked_fill-noncontig, groundingdino-349", "aten::masked_fill_.Scalar",
        lambda: (wave(3, 4).t(), wave(4, 3) > 0, 9.0), *_on("2.4.1", "2.6.0", "14.5")),
    Bug("addcdiv-noncontig", "aten::addcdiv_",
        lambda: (wave(3, 4).t(), wave(4, 3), wave(3, 4).t().abs() + 1),
        *_on("2.3.1", "2.4.1", "14.5")),
    Bug("addcdiv-noncontig", "aten::addcmul_", lambda: (wave(3, 4).t(), wave(4, 3), wave(4, 3)),
        *_on("2.3.1", "2.4.1", "14.5")),
    Bug("zero-slice-114692", "aten::zero_", lambda: (torch.ones(6)[2:3],),
        *_on("2.0.1", "2.1.2", "13.5")),
    Bug("index_add-transposed-macos14", "aten::index_add_", _places,
        *_on("2.11.0", "2.12.1", "14.5")),
    Bug("where-noncontig-cond", "aten::where.self",
        lambda: ((wave(3, 4) > 0).t(), wave(4, 3), wave(4, 3) + 9),
        *_on("2.7.1", "2.8.0", "14.5")),
    Bug("relu-nan-183571", "aten::relu", lambda: (torch.tensor([NAN, -1.0, 2.0]),),
        *_on("2.12.1", "2.13.0", "14.5")),
    Bug("unique-104879", "aten::_unique2", lambda: (torch.tensor([[3, 1, 3, 2]]), True, True, True),
        *_on("2.0.1", "2.1.2", "13.5")),
    Bug("sort-strided-101878", "aten::sort", lambda: (wave(4, 5).t(), 0),
        *_on("2.12.1", "2.13.0", "14.5")),
    Bug("sort-digamma-stride-175187", "aten::digamma", lambda: ((wave(4, 5).abs() + 0.5).t(),),
        *_on("2.11.0", "2.12.1", "14.5")),
    Bug("transformerlens-1178", "aten::linear", lambda: (wave(4, 8), wave(8, 6).t(), None),
        *_on("2.8.0", "2.9.1", "15.5")),
    Bug("sdpa-permute-181133, tabpfn-888", _SDPA, lambda: _permuted(2),
        *_on("2.11.0", "2.12.1", "15.5"), reference=_attention, outputs=1),
    Bug("st-3507", _SDPA, lambda: _permuted(1),
        *_on("2.8.0", "2.9.1", "15.5"), reference=_attention, outputs=1),
    Bug("sdpa-nan-not-propagated", _SDPA, _nan_query,
        *_on("2.13.0", "2.14.0", "15.5"), reference=_attention, outputs=1),
    Bug("sdpa-vdim-176767, hf-44591", _SDPA,
        lambda: (wave(1, 2, 12, 8), wave(1, 2, 12, 8), wave(1, 2, 12, 16)),
        *_on("2.11.0", "2.12.1", "15.5"), "misshapen", reference=_attention, outputs=1),
    Bug("copy-gappy-189961", "aten::copy_", lambda: (torch.zeros(8)[::2], torch.arange(8.0)[::2]),
        *_on("2.13.0", "2.14.0", "15.5"), on_host=(0,)),
    Bug("copy-index-108978", "aten::copy_", lambda: (torch.zeros(6)[3:4], torch.tensor([7.0])),
        *_on("2.0.1", "2.1.2", "13.5"), on_host=(0,)),
    Bug("cpu0dim-offset-187117", "aten::mul.Tensor", lambda: (wave(2), torch.arange(1.0, 4.0)[2]),
        *_on("2.12.1", "2.14.0", "15.5"), on_host=(1,)),
    Bug("hardswish-cl-107214", "aten::hardswish_backward",
        lambda: (wave(2, 3, 4, 4).cos(), _channels_last()), *_on("2.1.2", "2.8.0", "14.5")),
    Bug("hardswish-cl-107214", "aten::threshold_backward",
        lambda: (wave(2, 3, 4, 4).cos(), _channels_last(), 0.0),
        *_on("2.1.2", "2.15.0", "14.5")),
)  # fmt: skip


def _cube() -> Tensor:
    return wave(1, 1, 4, 4, 4)


def _plane() -> Tensor:
    return wave(1, 1, 8, 8)


def _points() -> Tensor:
    return wave(1, 3, 3, 2) * 0.4


REFUSED = (
    Bug("gridsample-border", "aten::grid_sampler_2d", lambda: (_plane(), _points(), 0, 1, False),
        *_on("2.10.0", "2.11.0", "15.5"), "raises"),
    Bug("rf-detr-622", "aten::grid_sampler_2d_backward",
        lambda: (wave(1, 1, 3, 3), _plane(), _points(), 0, 0, False, [True, True]),
        *_on("2.12.1", "2.13.0", "15.5"), "raises"),
    Bug("gridsampler3d", "aten::grid_sampler_3d",
        lambda: (_cube(), wave(1, 2, 2, 2, 3) * 0.4, 0, 0, False),
        *_on("2.8.0", "2.9.1", "15.5"), "raises"),
    Bug("kthvalue", "aten::kthvalue", lambda: (wave(8), 2),
        *_on("2.8.0", "2.9.1", "15.5"), "raises"),
    Bug("maxpool3d-141287, maxpool3d-158723", "aten::max_pool3d_with_indices",
        lambda: (_cube(), [2, 2, 2]), *_on("2.8.0", "2.9.1", "15.5"), "raises"),
    Bug("lu_solve-167238", "aten::linalg_lu_solve",
        lambda: (torch.tensor([[2.0, 1.0], [0.5, 2.5]]), _values(1, 2).int(), _RIGHT),
        *_on("2.13.0", "2.14.0", "15.5"), "raises"),
    Bug("ctc-160829, ctc-nejm-10", "aten::_ctc_loss",
        lambda: (wave(5, 1, 3).log_softmax(2), torch.tensor([[1, 2]]), [5], [2]),
        *_on("2.13.0", "2.14.0", "15.5"), "raises"),
    Bug("bicubic-aa-backward", "aten::_upsample_bicubic2d_aa_backward",
        lambda: (wave(1, 1, 4, 4), [4, 4], [1, 1, 8, 8], False),
        *_on("2.13.0", "2.14.0", "15.5"), "raises"),
    Bug("bicubic2d_aa-141287", "aten::_upsample_bicubic2d_aa", lambda: (_plane(), [4, 4], False),
        *_on("2.7.1", "2.8.0", "15.5"), "raises"),
    Bug("bilinear2d_aa-141287, torchtune-1723", "aten::_upsample_bilinear2d_aa",
        lambda: (_plane(), [4, 4], False), *_on("2.6.0", "2.7.1", "15.5"), "raises"),
    Bug("upsample_bicubic2d, depthanything-17", "aten::upsample_bicubic2d",
        lambda: (_plane(), [16, 16], False), *_on("2.5.1", "2.6.0", "15.5"), "raises"),
    Bug("solve_ex-148547, solve_ex-151189, solve_ex-98222, solve-comfy-141287",
        "aten::_linalg_solve_ex", lambda: (_SMALL, _RIGHT),
        *_on("2.6.0", "2.7.1", "15.5"), "raises", outputs=1),
    Bug("cholesky-77764", "aten::linalg_cholesky_ex", lambda: (_SMALL,),
        *_on("2.6.0", "2.7.1", "15.5"), "raises"),
    Bug("svd_lowrank-qr", "aten::linalg_qr", lambda: (_SMALL,),
        *_on("2.11.0", "2.12.1", "15.5"), "raises"),
    Bug("svd-out-complex", "aten::conj_physical_", lambda: (_complex(2),),
        *_on("2.14.0", "2.15.0", "15.5"), "raises"),
    Bug("fft-116392, tortoise-550", "aten::_fft_r2c", lambda: (wave(8), [0], 0, True),
        ("2.1.2", "13.5"), ("2.6.0", "15.5"), "raises"),
    Bug("conv3d-77818", "aten::convolution",
        lambda: (_cube(), wave(1, 1, 2, 2, 2), None, [1] * 3, [0] * 3, [1] * 3, False, [0] * 3, 1),
        ("2.1.2", "13.5"), ("2.6.0", "15.5"), "raises"),
    Bug("weight_norm-77764, bark-19, openvoice-91", "aten::_weight_norm_interface",
        lambda: (wave(3, 2), wave(3, 1), 0), ("2.1.2", "13.5"), ("2.5.1", "15.5"), "raises"),
    Bug("hf-28288", "aten::std_mean.correction", lambda: (wave(4, 4), [1]),
        ("2.1.2", "13.5"), ("2.5.1", "15.5"), "raises"),
    Bug("complex-mm", "aten::mm", lambda: (_complex(2, 2), _complex(2, 2)),
        ("2.1.2", "13.5"), ("2.5.1", "15.5"), "raises"),
    Bug("bf16-textgen-5216, qwen-497", "aten::add.Tensor",
        lambda: (wave(4).bfloat16(), wave(4).bfloat16()),
        ("2.1.2", "13.5"), ("2.5.1", "15.5"), "raises"),
    Bug("cumsum-int64-unsup", "aten::cumsum", lambda: (_values(3, 9, 1), 0),
        *_on("2.0.1", "2.1.2", "13.5"), "raises"),
    Bug("conv1d-guard-broad, nam-505", "aten::convolution",
        lambda: (wave(1, 1, 65_600), wave(1, 1, 2), None, [1], [0], [1], False, [0], 1),
        *_on("2.5.1", "2.6.0", "15.5"), "raises"),
    Bug("col2im-151820", "aten::col2im",
        lambda: (wave(1, 4, 9), [4, 4], [2, 2], [1, 1], [0, 0], [1, 1]),
        *_on("2.7.1", "2.8.0", "15.5"), "fallback"),
    Bug("im2col-132711", "aten::im2col",
        lambda: (wave(1, 1, 4, 4), [2, 2], [1, 1], [0, 0], [1, 1]),
        *_on("2.5.1", "2.6.0", "15.5"), "fallback"),
)  # fmt: skip
