"""Arguments as records: what a schema gives by number has the name that users know."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from scanner.c10 import DTYPES, LAYOUTS, MEMORY_FORMATS, QUANTIZED, name_of
from scanner.capture.describe import attribute, schema_arguments
from scanner.capture.placement import Placement
from scanner.capture.recorder import Recorder
from scanner.probe.rebuild import Unbuildable, bind
from scanner.probe.schema import schema_of
from scanner.records import OpCall

aten = torch.ops.aten


def described(func: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    given = schema_arguments(func, args, kwargs)
    return {name: attribute(value) for name, value in given.items()}


def test_a_default_dtype_is_recorded_by_name() -> None:
    assert described(aten.randint.default, 5, [3])["dtype"] == "int64"
    assert described(aten.tril_indices.default, 2, 3)["dtype"] == "int64"
    assert described(aten.randperm.default, 5)["dtype"] == "int64"


def test_a_default_memory_format_is_recorded_by_name() -> None:
    x = torch.ones(2)
    assert described(aten.contiguous.default, x)["memory_format"] == "contiguous_format"


def test_what_is_given_is_recorded_as_before() -> None:
    arguments = described(
        aten.empty.memory_format,
        [4],
        dtype=torch.float16,
        layout=torch.strided,
        device=torch.device("cpu"),
        memory_format=torch.preserve_format,
    )
    assert arguments == {
        "size": [4],
        "dtype": "float16",
        "layout": "strided",
        "device": "mps",
        "pin_memory": None,
        "memory_format": "preserve_format",
    }


def test_a_number_that_is_given_for_a_dtype_is_one_too() -> None:
    """`torch.ops` takes numbers as well."""
    assert described(aten.empty.memory_format, [4], dtype=6, layout=0)["dtype"] == "float32"


def test_other_numbers_and_texts_stay() -> None:
    arguments = described(aten.randint.low, 4, 6, [4])
    assert (arguments["low"], arguments["high"], arguments["size"]) == (4, 6, [4])
    assert described(aten.gelu.default, torch.ones(1))["approximate"] == "none"
    assert described(aten.sum.dim_IntList, torch.ones(1), [0], True)["keepdim"] is True


def _defaults() -> Iterator[tuple[str, str, Any]]:
    """(overload, argument, recorded) of every default in ATen that is a number by another name."""
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("aten::"):
            continue
        for argument in schema.arguments:
            kind = str(argument.real_type)
            if argument.default_value is not None and any(
                each in kind for each in ("ScalarType", "Layout", "MemoryFormat", "Device")
            ):
                func = type("Func", (), {"_schema": schema})
                value = schema_arguments(func, (), {})[argument.name]
                yield f"{schema.name}.{schema.overload_name}", argument.name, attribute(value)


def test_no_default_of_any_op_stays_a_number() -> None:
    found = list(_defaults())
    assert len(found) >= 10
    assert [each for each in found if not isinstance(each[2], str)] == []


def test_a_device_in_a_schema_is_a_device() -> None:
    library = torch.library.Library("opscan_describe", "DEF")
    library.define('make(int n, Device device="cpu", ScalarType dtype=6) -> Tensor')
    arguments = described(torch.ops.opscan_describe.make.default, 4)
    assert arguments == {"n": 4, "device": "mps", "dtype": "float32"}
    library._destroy()


@pytest.mark.parametrize(("name", "code"), DTYPES.items())
def test_dtypes_have_torchs_own_numbers(name: str, code: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert aten.empty.memory_format([1], dtype=code).dtype == getattr(torch, name)


@pytest.mark.parametrize("name", ["strided", "sparse_coo", "sparse_csr", "_mkldnn", "sparse_csc"])
def test_layouts_have_torchs_own_numbers(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = aten.empty.memory_format([2, 2], layout=LAYOUTS[name])
    assert made.layout == getattr(torch, name)


def test_memory_formats_have_torchs_own_numbers() -> None:
    x = torch.ones(2, 3, 4, 5)
    code = MEMORY_FORMATS["channels_last"]
    assert aten.clone(x, memory_format=code).is_contiguous(memory_format=torch.channels_last)
    video = torch.ones(2, 3, 4, 5, 6)
    code = MEMORY_FORMATS["channels_last_3d"]
    made = aten.clone(video, memory_format=code)
    assert made.is_contiguous(memory_format=torch.channels_last_3d)


def test_every_name_is_torchs() -> None:
    for name in (*DTYPES, *QUANTIZED, *LAYOUTS, *MEMORY_FORMATS):
        assert hasattr(torch, name)


def test_numbers_that_mean_nothing_have_no_name() -> None:
    assert name_of("ScalarType", 4) == "int64"
    assert name_of("ScalarType", 99) is None
    assert name_of("int", 4) is None


def test_a_captured_default_can_be_run_again() -> None:
    recorder = Recorder(lambda _: None, Placement(torch.device("cpu")))
    with recorder:
        torch.randint(0, 5, (3,))
    (call,) = (each for each in recorder.calls() if each.op.startswith("aten::randint"))
    schema = schema_of(call.op)
    assert bind(schema, call, [], "cpu").kwargs["dtype"] == torch.int64


@pytest.mark.parametrize(
    ("op", "argument", "number", "value"),
    [
        ("aten::randperm", "dtype", 4, torch.int64),
        ("aten::empty.memory_format", "memory_format", 0, torch.contiguous_format),
        ("aten::empty.memory_format", "layout", 0, torch.strided),
    ],
)
def test_records_of_early_versions_are_still_understood(
    op: str, argument: str, number: int, value: object
) -> None:
    call = OpCall(
        op=op, phase="forward", inputs=(), attributes={"n": 5, "size": [5], argument: number}
    )
    assert bind(schema_of(op), call, [], "cpu").kwargs[argument] == value


@pytest.mark.parametrize(("argument", "value"), [("dtype", 99), ("layout", 99), ("layout", "x")])
def test_what_no_torch_has_cannot_be_rebuilt(argument: str, value: object) -> None:
    op = "aten::empty.memory_format"
    call = OpCall(op=op, phase="forward", inputs=(), attributes={"size": [5], argument: value})
    with pytest.raises(Unbuildable, match="has no"):
        bind(schema_of(op), call, [], "cpu")
