from __future__ import annotations

import zipfile
from pathlib import Path
from types import SimpleNamespace

from opdb.build.upstream import FILE, Expectation, expectations, read_wheel
from opdb.build.upstream_entries import Own, definitions, entries

INTEGERS = ("int64", "int32", "int16", "int8", "uint8")

SOURCE = """
import unittest
import torch
from .common_utils import MACOS_VERSION
from .opinfo.core import DecorateInfo, OpInfo

if torch.backends.mps.is_available():

    def mps_ops_modifier(ops, device_type="mps", xfail_exclusion=None, sparse=False):
        XFAIL = {"logaddexp": None, "dot": [torch.int64] if MACOS_VERSION < 15.0 else []}
        SKIP = {"empty": [torch.half, torch.float32]}
        COMPLEX = {"abs"}

        for op in ops:
            key = op.name + op.variant_test_name
            if key in XFAIL:
                op.decorators += (DecorateInfo(unittest.expectedFailure, dtypes=XFAIL[key]),)
            if key in SKIP:
                op.decorators += (DecorateInfo(unittest.skip("no"), dtypes=SKIP[key]),)
            if key not in COMPLEX:
                d = DecorateInfo(unittest.expectedFailure, dtypes=[torch.complex64])
                d.device_type = device_type
                op.decorators = op.decorators + (d,)
        return ops

    def mps_ops_grad_modifier(ops):
        for op in ops:
            if op.name in {"topk"}:
                op.decorators += (DecorateInfo(unittest.expectedFailure, dtypes=[torch.half]),)
        return ops
"""

EVERYWHERE = "14.0,15.0,26.0"


def test_lists_systems_dtypes_and_directions() -> None:
    complex_fails = ("forward", "xfail", "complex64", EVERYWHERE)
    assert expectations(SOURCE) == (
        Expectation("*", *complex_fails),
        Expectation("abs", "forward", "pass", "*", EVERYWHERE),
        Expectation("dot", *complex_fails),
        Expectation("dot", "forward", "xfail", "int64", "14.0"),
        Expectation("empty", "forward", "skip", "float16,float32", EVERYWHERE),
        Expectation("empty", *complex_fails),
        Expectation("logaddexp", "forward", "xfail", "*", EVERYWHERE),
        Expectation("logaddexp", *complex_fails),
        Expectation("topk", *complex_fails),
        Expectation("topk", "gradient", "xfail", "float16", EVERYWHERE),
    )


def test_a_wheel_without_the_file_says_nothing(tmp_path: Path) -> None:
    wheel = tmp_path / "torch.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("torch/version.py", "")
    assert read_wheel(wheel) == ()
    with zipfile.ZipFile(wheel, "a") as file:
        file.writestr(FILE, SOURCE)
    assert len(read_wheel(wheel)) == 10


DEFINITIONS = """
op_db = [
    OpInfo(
        "lerp",
        dtypes=floating_types_and(torch.half),
        dtypesIfMPS=all_types(),
        backward_dtypesIfMPS=custom_types(torch.float32),
        skips=(
            DecorateInfo(unittest.expectedFailure, "TestConsistency", device_type="mps"),
            DecorateInfo(unittest.skip("no"), "TestConsistency", "test_output_grad_match",
                         dtypes=(torch.half,), active_if=lambda _: MACOS_VERSION < 15.0),
            DecorateInfo(unittest.expectedFailure, "TestConsistency", device_type="cpu"),
            DecorateInfo(toleranceOverride({}), "TestConsistency"),
            DecorateInfo(unittest.expectedFailure, "TestCommon"),
        ),
    ),
    OpInfo("max", variant_test_name="binary", dtypes=unknown(torch.half)),
]
"""


def test_reads_what_definitions_say_of_a_system() -> None:
    floats = ("float16", "float32", "float64")
    names = {
        "torch": SimpleNamespace(half="float16", float32="float32"),
        "all_types": lambda: (*floats, "bfloat16", *INTEGERS, "bool"),
        "floating_types_and": lambda *more: (*floats, *more),
        "custom_types": lambda *dtypes: dtypes,
    }
    calls = definitions(DEFINITIONS)
    expected_failure = Own("lerp", "forward", "xfail", "*")
    untested = [
        Own("lerp", "forward", "skip", "complex32,complex64"),
        Own(
            "lerp",
            "gradient",
            "skip",
            ",".join(sorted({"bfloat16", "bool", "complex32", "complex64", "float16", *INTEGERS})),
        ),
    ]
    assert list(entries(calls, names | {"MACOS_VERSION": 15.0})) == [expected_failure, *untested]
    assert list(entries(calls, names | {"MACOS_VERSION": 14.0})) == [
        expected_failure,
        Own("lerp", "gradient", "skip", "float16"),
        *untested,
    ]
