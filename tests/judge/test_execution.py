"""What executing a release adds to its registrations."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scanner.judge.findings import op_findings
from scanner.judge.verdicts import judge
from scanner.records import OpCall, Target, Verdict
from tests.samples import COMPOSITE, KERNEL, MISSING, TORCH_29, Facts, call, graph, spec

WITH_FALLBACK = msgspec.structs.replace(TORCH_29, fallback=True)
RAISES = {"outcome": "raises", "by_dtype": True, "detail": "RuntimeError: not for integers"}
UNSERVED = {
    "outcome": "raises",
    "by_dtype": True,
    "detail": "NotImplementedError: The operator 'aten::x' is not currently implemented for the "
    "MPS device",
}


def lacks(callee: str) -> dict[str, Any]:
    text = f"The operator '{callee}' is not currently implemented for the MPS device"
    return {"outcome": "raises", "detail": f"NotImplementedError: {text}"}


KNOWN = Facts(
    {
        "aten::addr": KERNEL,
        "aten::whole": COMPOSITE,
        "aten::missing": MISSING,
        "aten::ends": KERNEL,
        "aten::runs": KERNEL,
        "aten::ended": KERNEL,
    },
    executed={
        ("aten::ends", "every"): lacks("aten::missing"),
        ("aten::ended", "every"): lacks("aten::runs"),
        ("aten::whole", "every"): lacks("aten::missing"),
        ("aten::addr", "int64"): RAISES | {"fixed_in": "2.13.0"},
        ("aten::addr", "int64", "0-dim"): {"outcome": "native-shader"},
        ("aten::addr", "int32"): {"outcome": "mixed", "detail": "native-shader:2,raises:1; E: x"},
        ("aten::addr", "int16"): {"outcome": "unknown", "detail": "not executable"},
        ("aten::addr", "uint8"): RAISES | {"calls": 1},
        ("aten::addr", "bool"): UNSERVED,
        ("aten::addr", "float16"): {"outcome": "fallback", "detail": "LAPACK dsyevd"},
        ("aten::addr", "bfloat16"): RAISES | {"by_dtype": False},
        ("aten::whole", "int64"): RAISES,
        ("aten::missing", "int64"): {"outcome": "native-shader"},
        ("aten::never_heard_of", "int64"): RAISES,
    },
)


def verdict(op: OpCall, target: Target = TORCH_29) -> Verdict:
    (only,) = judge(graph(op), target, KNOWN)
    return only


def of(dtype: str, op: str = "aten::addr", **other: Any) -> OpCall:
    return call(op, spec(dtype=dtype, **other))


def test_a_registered_kernel_that_raises_for_the_dtype_is_unsupported() -> None:
    found = verdict(of("int64"))
    assert (found.status, found.evidence, found.fixed_in) == ("unsupported", "simulated", "2.13.0")
    assert "RuntimeError: not for integers" in found.reason
    assert "PYTORCH_ENABLE_MPS_FALLBACK=1 does not help" in found.reason


def test_the_variable_changes_nothing_where_a_kernel_is_registered() -> None:
    assert verdict(of("int64"), WITH_FALLBACK).status == "unsupported"


def test_the_finding_tells_that_the_variable_does_not_help() -> None:
    op = of("int64")
    (found,) = op_findings(graph(op), TORCH_29, [verdict(op)], KNOWN)
    assert found.rule == "OPS101"
    assert "PYTORCH_ENABLE_MPS_FALLBACK=1 does not help" in found.message
    assert "PYTORCH_ENABLE_MPS_FALLBACK" not in found.remedy
    assert found.fixed_in == "2.13.0"


def test_a_missing_kernel_inside_is_served_by_the_variable() -> None:
    assert verdict(of("bool")).status == "unsupported"
    assert "does not help" not in verdict(of("bool")).reason
    served = verdict(of("bool"), WITH_FALLBACK)
    assert (served.status, served.evidence) == ("fallback", "inferred")


@pytest.mark.parametrize("dtype", ["int32", "int16", "uint8", "float16", "bfloat16", "float32"])
def test_other_outcomes_single_calls_and_other_reasons_change_nothing(dtype: str) -> None:
    found = verdict(of(dtype))
    assert (found.status, found.evidence) == ("native", "database")


def test_a_layout_with_a_fact_of_its_own_is_judged_by_it() -> None:
    assert verdict(of("int64", shape=())).status == "native"


def test_a_kernel_that_always_ends_in_a_missing_one_is_unsupported_for_every_dtype() -> None:
    found = verdict(of("float32", "aten::ends"))
    assert (found.status, found.evidence) == ("unsupported", "simulated")
    assert "'aten::missing'" in found.reason
    assert verdict(of("float32", "aten::ends"), WITH_FALLBACK).status == "fallback"


@pytest.mark.parametrize("op", ["aten::ended", "aten::whole"])
def test_it_takes_the_database_to_lack_that_kernel_too(op: str) -> None:
    """The simulator knows no kernels that Python registers, and composites are followed."""
    assert verdict(of("float32", op)).status in {"native", "composite"}


def test_empty_tensors_and_sparse_ones_are_not_judged_by_full_dense_ones() -> None:
    assert verdict(of("int64", shape=(0, 3))).status == "native"
    facts = Facts(
        {"aten::addr": KERNEL, "aten::addr@SparseMPS": KERNEL},
        executed={("aten::addr", "int64"): RAISES},
    )
    sparse = graph(of("int64", layout="sparse_coo"))
    assert judge(sparse, TORCH_29, facts)[0].status == "native"


def test_a_composite_that_raises_is_unsupported_and_a_missing_kernel_stays_missing() -> None:
    assert verdict(of("int64", "aten::whole")).status == "unsupported"
    assert verdict(of("int64", "aten::missing")).evidence == "database"
    assert verdict(of("int64", "aten::never_heard_of")).status == "unknown"


def test_the_main_operand_decides_not_the_first() -> None:
    op = call("aten::addr", spec(name="condition", dtype="bool"), spec(name="self", dtype="int64"))
    assert verdict(op).evidence == "simulated"


def test_without_tensors_the_result_decides() -> None:
    made = msgspec.structs.replace(of("int64"), inputs=(), outputs=(spec(dtype="int64"),))
    assert verdict(made).status == "unsupported"
