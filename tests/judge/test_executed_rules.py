"""Rules about ops that run, and what they cost beside the GPU's work."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.judge.findings import op_findings
from scanner.judge.verdicts import judge
from scanner.records import Finding
from tests.samples import KERNEL, MISSING, TORCH_29, Facts, call, graph, spec

KNOWN = Facts(
    {
        "aten::nonzero": KERNEL,
        "aten::_linalg_eigh": KERNEL,
        "aten::_local_scalar_dense": KERNEL,
        "aten::unique_dim": MISSING,
    },
    executed={
        ("aten::nonzero", "float32"): {"outcome": "native-shader", "waits": "1"},
        ("aten::nonzero", "float16"): {"outcome": "native-shader", "waits": "1..4"},
        ("aten::nonzero", "bfloat16"): {"outcome": "native-shader", "waits": "2"},
        ("aten::nonzero", "int64"): {"outcome": "native-shader", "waits": "0..1"},
        ("aten::nonzero", "int32"): {"outcome": "native-shader", "waits": "0"},
        ("aten::nonzero", "bool"): {"outcome": "raises", "waits": "-"},
        ("aten::_linalg_eigh", "float32"): {
            "outcome": "fallback",
            "waits": "4",
            "detail": "LAPACK ssyevd",
        },
        ("aten::unique_dim", "float32"): {"outcome": "raises", "waits": "-"},
    },
)


def found(op: str, dtype: str = "float32", **more: Any) -> tuple[Finding, ...]:
    made = graph(call(op, spec(dtype=dtype), **more))
    return op_findings(made, TORCH_29, judge(made, TORCH_29, KNOWN), KNOWN)


@pytest.mark.parametrize(
    ("dtype", "often"), [("float32", "once"), ("bfloat16", "2 times"), ("float16", "1 to 4 times")]
)
def test_an_op_that_always_waits_is_noted(dtype: str, often: str) -> None:
    (finding,) = found("aten::nonzero", dtype)
    assert (finding.rule, finding.severity) == ("OPS303", "note")
    assert f"waits for the GPU {often} a call (simulated torch 2.9.1)" in finding.message


@pytest.mark.parametrize("dtype", ["int64", "int32", "bool", "uint8"])
def test_one_that_may_not_wait_or_was_not_seen_is_not(dtype: str) -> None:
    assert found("aten::nonzero", dtype) == ()


def test_a_number_for_python_waits_without_having_been_executed() -> None:
    (finding,) = found("aten::_local_scalar_dense")
    assert finding.rule == "OPS303"
    assert "simulated" not in finding.message


def test_work_on_the_cpu_inside_is_a_warning_that_names_it() -> None:
    (finding,) = found("aten::_linalg_eigh")
    assert (finding.rule, finding.severity) == ("OPS304", "warning")
    assert "LAPACK ssyevd" in finding.message


def test_an_op_that_does_not_run_is_reported_as_that_alone() -> None:
    (finding,) = found("aten::unique_dim")
    assert finding.rule == "OPS101"


def test_waits_are_told_of_a_step_too() -> None:
    (finding,) = found("aten::nonzero", "float16", calls=3)
    assert finding.message.endswith(
        "1 to 4 times a call (simulated torch 2.9.1), 3 to 12 times a step"
    )


def test_a_number_in_a_tensor_of_the_cpu_is_not_waited_for() -> None:
    for device, rules in (("target", ["OPS303"]), ("cpu", [])):
        number = spec((), name="value", device=device)
        made = graph(call("aten::nonzero", spec(), number))
        verdicts = judge(made, TORCH_29, KNOWN)
        assert [x.rule for x in op_findings(made, TORCH_29, verdicts, KNOWN)] == rules
