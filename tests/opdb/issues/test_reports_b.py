"""Collected reports of missing ops and dtypes: flagged where they were seen, silent when cured."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from opdb import query
from opdb.issues.calls import read_call
from scanner.judge.verdicts import judge
from scanner.records import Status, Target
from tests.samples import graph


class Report(NamedTuple):
    """A configuration, a release that refuses it, and the first that does not: None for none."""

    name: str
    call: str
    seen: str
    cured: str | None
    macos: str = "15.5"


REFUSED: frozenset[Status] = frozenset({"unsupported", "fallback"})

POOL = "_adaptive_avg_pool2d(self=float32[1,2,26,39], output_size=[2,2])"
BFLOAT16 = "relu(self=bfloat16[3]) >> bfloat16[3]"
BICUBIC = "upsample_bicubic2d(self=float32[1,1,4,4], output_size=[8,8], align_corners=False)"
BILINEAR_AA = "_upsample_bilinear2d_aa(self=float32[1,1,4,4], output_size=[8,8])"
CTC = "_ctc_loss(log_probs=float32[5,1,3], targets=int64[1,2], blank=0)"
FFT = "_fft_r2c(self=float32[8], dim=[0], normalization=0, onesided=True) >> complex64[5]"
FLOAT64 = "_to_copy(self=float64[2].on_cpu, dtype=float64) >> float64[2]"
LONG = (
    "convolution(input=float32[1,1,65540], weight=float32[1,1,2], stride=[1], padding=[0], "
    "dilation=[1], transposed=False, output_padding=[0], groups=1) >> float32[1,1,65539]"
)
CONV3D = (
    "convolution(input=float32[1,2,5,5,5], weight=float32[3,2,2,2,2], stride=[1,1,1], "
    "padding=[0,0,0], dilation=[1,1,1], transposed=False, output_padding=[0,0,0], groups=1)"
)
GRID = (
    "grid_sampler_2d(input=float32[1,2,4,4], grid=float32[1,3,3,2], interpolation_mode=0, "
    "padding_mode=1, align_corners=False)"
)
GRID_BACKWARD = (
    "grid_sampler_2d_backward(grad_output=float32[1,2,3,3], input=float32[1,2,4,4], "
    "grid=float32[1,3,3,2], interpolation_mode=0, padding_mode=0, align_corners=False)"
)
GRID_3D = (
    "grid_sampler_3d(input=float32[1,2,4,4,4], grid=float32[1,3,3,3,3], interpolation_mode={}, "
    "padding_mode=0, align_corners=False)"
)
POOL_3D = "max_pool3d_with_indices(self=float32[1,1,4,4,4], kernel_size=[2,2,2])"
SOLVE = "_linalg_solve_ex(A=float32[2,2], B=float32[2,2])"
WEIGHT_NORM = "_weight_norm_interface(v=float32[3,2], g=float32[3,1])"

OPS = (
    Report("adaptive-143864", POOL, "2.5.1", None),
    Report("adaptive-96056", POOL, "2.0.1", None),
    Report("adaptive3d", "_adaptive_avg_pool3d(self=float32[1,2,4,4,4])", "2.13.0", None),
    Report("bark-19", WEIGHT_NORM, "2.0.1", "2.2.0"),
    Report(
        "bicubic-aa-backward",
        "_upsample_bicubic2d_aa_backward(grad_output=float32[1,1,8,8])",
        "2.10.0",
        "2.14.0",
    ),
    Report(
        "bicubic2d_aa-141287", "_upsample_bicubic2d_aa(self=float32[1,1,4,4])", "2.7.1", "2.8.0"
    ),
    Report("bilinear2d_aa-141287", BILINEAR_AA, "2.6.0", "2.7.0"),
    Report("cholesky-77764", "linalg_cholesky_ex(self=float32[2,2])", "2.5.1", "2.7.0"),
    Report("col2im-151820", "col2im(self=float32[1,4,4])", "2.6.0", "2.8.0"),
    Report("conv1d-152278", LONG, "2.6.0", "2.15.0", "15.0"),
    Report("conv1d-152278", LONG, "2.7.1", "2.15.0", "14.7"),
    Report("conv1d-guard-broad", LONG, "2.5.1", "2.6.0", "15.1"),
    Report("conv3d-77818", CONV3D, "1.13.1", "2.3.0"),
    Report("ctc-160829", CTC, "2.7.1", "2.14.0"),
    Report("ctc-nejm-10", CTC, "2.13.0", "2.14.0"),
    Report("depthanything-17", BICUBIC, "2.3.1", "2.6.0"),
    Report("fft-116392", FFT, "2.1.2", "2.3.0"),
    Report("gridsample-border", GRID, "2.2.2", "2.11.0"),
    Report("gridsampler3d", GRID_3D.format(0), "2.8.0", "2.9.0"),
    Report("gridsampler3d", GRID_3D.format(1), "2.9.1", "2.13.0"),
    Report(
        "handrefiner-25",
        'empty.memory_format(size=[2,2]) >> float32[2,2].layout("sparse_coo")',
        "2.0.1",
        "2.9.0",
    ),
    Report("hf-28288", "std_mean.correction(self=float32[4])", "2.1.2", "2.3.0"),
    Report("im2col-132711", "im2col(self=float32[1,1,4,4])", "2.5.0", "2.6.0"),
    Report(
        "index-tensor-out", "index.Tensor(self=float32[4], indices=[int64[2]])", "1.12.1", "1.13.0"
    ),
    Report("kthvalue", "kthvalue(self=float32[4], k=2)", "2.5.1", "2.9.0"),
    Report("linalg-eig", "linalg_eig(self=float32[2,2])", "2.5.1", None),
    Report(
        "lu_solve-167238",
        "linalg_lu_solve(LU=float32[2,2], pivots=int32[2], B=float32[2,1])",
        "2.9.1",
        "2.10.0",
    ),
    Report("maxpool3d-141287", POOL_3D, "2.6.0", "2.9.0"),
    Report("maxpool3d-158723", POOL_3D, "2.7.1", "2.9.0"),
    Report("nam-505", LONG, "2.5.1", "2.6.0", "15.1"),
    Report(
        "nested-mask-141287",
        "_nested_tensor_from_mask_left_aligned(t=float32[2,3,4], mask=bool[2,3])",
        "2.6.0",
        None,
    ),
    Report("openvoice-91", WEIGHT_NORM, "2.1.2", "2.2.0"),
    Report("pyg-6837", "_unique2(self=int64[3])", "1.13.0", "2.0.0"),
    Report("rf-detr-622", GRID, "2.9.1", "2.11.0"),
    Report("rf-detr-622", GRID_BACKWARD, "2.10.0", "2.13.0"),
    Report("solve-comfy-141287", SOLVE, "2.6.0", "2.7.0"),
    Report("solve_ex-148547", SOLVE, "2.6.0", "2.7.0"),
    Report("solve_ex-151189", SOLVE, "2.6.0", "2.7.0"),
    Report("solve_ex-98222", SOLVE, "2.0.0", "2.7.0"),
    Report(
        "sparse-mm-167908",
        'mm(self=float32[2,3].layout("sparse_coo"), mat2=float32[3,2])',
        "2.9.1",
        "2.10.0",
    ),
    Report("st-1736", "cumsum(self=float32[4], dim=0)", "1.12.1", "2.0.0"),
    Report("svd_lowrank-qr", "linalg_qr(A=float32[3,2])", "2.9.0", "2.12.0"),
    Report("torchtune-1723", BILINEAR_AA, "2.5.1", "2.7.0"),
    Report("tortoise-550", FFT, "2.1.0", "2.3.0"),
    Report("upsample_bicubic2d", BICUBIC, "2.2.2", "2.6.0"),
    Report(
        "upsample_nearest1d-89277",
        "upsample_nearest1d(self=float32[1,1,4], output_size=[8])",
        "1.12.1",
        "1.13.0",
    ),
    Report("weight_norm-77764", WEIGHT_NORM, "1.12.1", "2.2.0"),
)
"""Where a report guesses the release of the cure, the wheels' registrations stand instead."""

DTYPES = (
    Report("bf16-141864", BFLOAT16, "2.2.2", "2.3.0"),
    Report("bf16-textgen-5216", BFLOAT16, "2.1.2", "2.3.0"),
    Report("complex-mm", "mm(self=complex64[2,3], mat2=complex64[3,2])", "2.2.2", "2.4.0"),
    Report("cumsum-int64-unsup", "cumsum(self=int64[4], dim=0)", "2.0.1", "2.1.0"),
    Report("f64-122602", FLOAT64, "2.2.2", None),
    Report("f64-darts-2326", FLOAT64, "2.0.0", None),
    Report("f64-simpletuner-1523", FLOAT64, "2.7.1", None),
    Report("f64-transformers-31060", FLOAT64, "2.3.1", None),
    Report("fft-freeu-12", "_fft_c2c(self=complex64[8], dim=[0])", "2.0.1", "2.3.0"),
    Report("lightning-19981", FLOAT64, "2.2.2", None),
    Report("lightning-20250", FLOAT64, "2.4.1", None),
    Report("lightning-21261", FLOAT64, "2.8.0", None),
    Report("lightning-etna-612", FLOAT64, "2.5.1", None),
    Report("qwen-497", BFLOAT16, "2.0.1", "2.3.0"),
    Report(
        "qwen-emb-49",
        "index_put(self=bfloat16[4], indices=[int64[2]], values=bfloat16[2], accumulate=True)",
        "2.7.1",
        "2.8.0",
    ),
    Report("sam-94", FLOAT64, "2.0.1", None),
    Report("sammie-4", FLOAT64, "2.6.0", None),
    Report("whisper-2704", FLOAT64, "2.13.0", None),
)

each = pytest.mark.parametrize(
    "report", [*OPS, *DTYPES], ids=lambda report: f"{report.name}-{report.seen}"
)


def status(report: Report, version: str) -> Status:
    """What opscan says about the configuration in a release."""
    target = Target(framework="torch", version=version, macos=report.macos)
    (verdict,) = judge(graph(read_call(report.call)), target, query)
    return verdict.status


@each
def test_it_is_flagged_where_it_was_seen(report: Report) -> None:
    assert status(report, report.seen) in REFUSED


@each
def test_it_is_not_flagged_once_cured(report: Report) -> None:
    newest = query.releases()[-1]
    if report.cured is None:
        assert status(report, newest) in REFUSED
    else:
        releases = query.releases()
        before = releases[releases.index(report.cured) - 1]
        assert status(report, before) in REFUSED
        assert status(report, report.cured) in {"native", "composite"}
