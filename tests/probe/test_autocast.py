"""Which ops autocast casts, and what their half-precision variants show."""

from __future__ import annotations

import os

import pytest
import torch

from scanner.backends.cpu import CpuDevice
from scanner.errors import UsageError
from scanner.probe import measure as measuring
from scanner.probe import precision
from scanner.probe.autocast import Variants, in_dtype, names_of, parse_dtypes, variants_of
from scanner.probe.autocast_ops import is_cast
from scanner.probe.inputs import drawn
from scanner.probe.measure import measure
from scanner.probe.plan import config_key
from scanner.probe.schema import schema_of
from scanner.records import Measurement, OpCall, Phase, TensorSpec


def spec(name: str, dtype: str = "float32", device: str = "target") -> TensorSpec:
    return TensorSpec(name=name, dtype=dtype, shape=(4, 4), stride=(4, 1), device=device)


def call(op: str, *inputs: TensorSpec, via: str = "", phase: Phase = "forward") -> OpCall:
    return OpCall(op=f"aten::{op}", phase=phase, inputs=inputs, via=via)


MM = call("mm", spec("self"), spec("mat2"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("op", "cast"),
    [
        # The list in PyTorch's documentation: what it casts to lower precision, ...
        ("mm", True),
        ("linear", True),
        ("conv2d", True),
        ("convolution", True),
        ("_mps_convolution", True),
        ("baddbmm", True),
        ("scaled_dot_product_attention", True),
        # ... runs in float32, ...
        ("softmax.int", False),
        ("layer_norm", False),
        ("sum.dim_IntList", False),
        # ... promotes to the widest, ...
        ("addcmul", False),
        ("cat", False),
        # ... and what it leaves alone or does not know.
        ("relu", False),
        ("no_such_op", False),
    ],
)
def test_autocast_is_asked(op: str, cast: bool, dtype: torch.dtype) -> None:
    assert is_cast(f"aten::{op}", dtype) is cast


def test_an_op_is_known_by_what_it_stands_for() -> None:
    backward = call("mps_convolution_backward", via="aten::convolution_backward")
    assert "aten::_mps_convolution" in names_of(backward)
    assert "aten::convolution" in names_of(backward)
    attention = call("_scaled_dot_product_attention_math_for_mps")
    assert "aten::scaled_dot_product_attention" in names_of(attention)
    assert names_of(MM) == ("aten::mm",)


def test_what_is_cast() -> None:
    mixed = call("mm", spec("self"), spec("mat2", device="cpu"), spec("x", "float64"))
    assert [each.dtype for each in in_dtype(mixed, "float16").inputs] == [
        "float16",
        "float32",
        "float64",
    ]
    assert config_key(in_dtype(MM, "float16")) != config_key(MM)


@pytest.mark.parametrize("text", ["float8", "float32", "float16,half", ""])
def test_a_bad_dtype_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot cast to"):
        parse_dtypes(text)


def test_dtypes_are_read_once_each() -> None:
    assert parse_dtypes("bfloat16, float16,bfloat16") == ("bfloat16", "float16")


def test_variants_are_made_of_what_is_cast() -> None:
    calls = [
        MM,
        call("relu", spec("self")),
        call("mm", spec("self", "float64"), spec("mat2", "float64")),
        call("linear", spec("input"), spec("weight"), phase="optimizer"),
    ]
    variants = variants_of(calls, ("float16", "bfloat16"), os.environ)
    assert [(each.op, each.inputs[0].dtype) for each in variants.to_run()] == [
        ("aten::mm", "float16"),
        ("aten::mm", "bfloat16"),
    ]
    assert variants.of(calls[1], {}) == ()


def test_a_variant_through_a_device() -> None:
    variants = Variants({config_key(MM): {"float16": in_dtype(MM, "float16")}})
    drill = "drill:nan=aten::mm[dtype=float16]"
    measured = measure([MM], drill, os.environ, variants=variants)
    assert measured[config_key(MM)].status == "native"
    (half,) = variants.of(MM, measured)
    assert (half.dtype, half.measurement.status, half.overflows) == ("float16", "nan", 1)


def test_precision_is_that_of_the_dtype() -> None:
    found = precision.precision_of(CpuDevice(), in_dtype(MM, "bfloat16"), "bfloat16", 0)
    assert found is not None
    assert found.error is not None
    assert found.base_error is not None
    # Of four products with 8 bits each, and with 24.
    assert 2**-12 < found.error < 2**-5
    assert found.base_error < 2**-20
    assert (found.overflows, found.elements) == (0, 16)


def test_a_variant_of_what_took_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_PATIENT_S", 0.0)
    variants = Variants({config_key(MM): {"float16": in_dtype(MM, "float16")}})
    (found,) = variants.of(MM, measure([MM], "cpu", os.environ, variants=variants))
    assert found.measurement.status == "unknown"
    assert found.measurement.detail["reason"].startswith("left out: float32 took")


def test_without_dtypes_nothing_is_asked() -> None:
    assert variants_of([MM], (), {}).to_run() == []


def result(median: float | None, precision: dict[str, float] | None = None) -> Measurement:
    timing = {} if median is None else {"timing": {"device": {"median_s": median}}}
    detail = {**timing, **({"precision": precision} if precision else {})}
    return Measurement(device="d", status="native", detail=detail)


BESIDE = {"error": 5e-4, "base_error": 1e-7, "overflows": 3, "elements": 16}


@pytest.mark.parametrize(
    ("base", "half", "expected"),
    [
        (result(3.0), result(1.5, BESIDE), (5e-4, 1e-7, 3, 2.0)),
        (result(None), result(1.5, BESIDE), (5e-4, 1e-7, 3, None)),
        (result(3.0), result(None), (None, None, 0, None)),
    ],
)
def test_variants_are_compared_with_float32(
    base: Measurement, half: Measurement, expected: tuple[float | None, ...]
) -> None:
    variant = in_dtype(MM, "float16")
    variants = Variants({config_key(MM): {"float16": variant}})
    assert variants.in_dtypes() == {"float16": [variant]}
    (found,) = variants.of(MM, {config_key(MM): base, config_key(variant): half})
    assert (found.error, found.base_error, found.overflows, found.speedup) == expected


def test_an_overflow_that_the_cpu_has_too_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    half = in_dtype(MM, "float16")
    large = drawn(schema_of(MM.op), MM, 0)
    for tensor in large.tensors:
        tensor.copy_(torch.eye(4) * 1000)  # a diagonal of 10⁶, beyond float16's 65504
    monkeypatch.setattr(precision, "drawn", lambda *_: large)
    found = precision.precision_of(CpuDevice(), half, "float16", 0)
    assert found == precision.Precision(error=0.0, base_error=0.0, overflows=4, elements=16)


def test_random_values_are_not_compared() -> None:
    dropout = OpCall(
        op="aten::native_dropout",
        phase="forward",
        inputs=(spec("input", "float16"),),
        attributes={"p": 0.5, "train": True},
    )
    assert precision.precision_of(CpuDevice(), dropout, "float16", 0) is None
