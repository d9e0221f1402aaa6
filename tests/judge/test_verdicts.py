from __future__ import annotations

import msgspec
import pytest

from scanner.judge.verdicts import judge, variable_serves, wide_dtypes
from scanner.records import OpCall, Target, Verdict
from tests.samples import (
    COMPOSITE,
    KERNEL,
    MISSING,
    RAISES,
    SILENT,
    TORCH_29,
    Facts,
    call,
    graph,
    spec,
)

WITH_FALLBACK = msgspec.structs.replace(TORCH_29, fallback=True)
KNOWN = Facts(
    {
        "aten::mm": KERNEL,
        "aten::linear": COMPOSITE,
        "aten::missing": MISSING | {"fixed_in": "2.14.0", "links": ("https://example.org/1",)},
        "aten::host_less": MISSING | {"cpu": False},
        "aten::raising": RAISES,
        "aten::silent": SILENT,
        "aten::wrapper": MISSING | {"composite": "explicit", "calls": ("aten::missing",)},
        "aten::wraps_raising": RAISES
        | {"registered": None, "composite": "explicit", "calls": ("aten::raising",)},
        "aten::two": MISSING
        | {"composite": "explicit", "calls": ("aten::missing", "aten::raising", "aten::mm")},
        "aten::loop": MISSING | {"composite": "explicit", "calls": ("aten::loop",)},
        "aten::mm@SparseMPS": MISSING,
        "aten::add@SparseMPS": KERNEL,
        "aten::add": KERNEL,
    }
)


def verdict(op: OpCall, target: Target = TORCH_29) -> Verdict:
    (only,) = judge(graph(op), target, KNOWN)
    return only


@pytest.mark.parametrize(
    ("op", "without_variable", "with_variable"),
    [
        ("aten::mm", "native", "native"),
        ("aten::linear", "composite", "composite"),
        ("aten::silent", "fallback", "fallback"),
        ("aten::missing", "unsupported", "fallback"),
        ("aten::wrapper", "unsupported", "fallback"),
        # The variable's catch-all is never reached where something is registered, ...
        ("aten::raising", "unsupported", "unsupported"),
        ("aten::wraps_raising", "unsupported", "unsupported"),
        ("aten::two", "unsupported", "unsupported"),
        # ... and has nothing to call where the CPU has no kernel.
        ("aten::host_less", "unsupported", "unsupported"),
        ("aten::never_heard_of", "unknown", "unknown"),
    ],
)
def test_status_with_and_without_the_fallback_variable(
    op: str, without_variable: str, with_variable: str
) -> None:
    assert verdict(call(op)).status == without_variable
    assert verdict(call(op), WITH_FALLBACK).status == with_variable


def test_what_the_fact_says_is_passed_on() -> None:
    found = verdict(call("aten::missing"))
    assert found == Verdict(
        target="torch==2.9.1",
        status="unsupported",
        evidence="database",
        reason="no kernel is registered for MPS",
        fixed_in="2.14.0",
        links=("https://example.org/1",),
    )


def test_unknown_has_no_evidence() -> None:
    assert verdict(call("aten::never_heard_of")).evidence is None


def test_an_op_of_another_library_is_unknown_and_not_looked_up() -> None:
    found = verdict(call("torchvision::nms"))
    assert (found.status, found.evidence) == ("unknown", None)
    assert "torchvision" in found.reason


def test_an_op_on_cpu_tensors_only_is_skipped() -> None:
    host = spec(device="cpu")
    found = verdict(call("aten::missing", host, host, outputs=(host,)))
    assert (found.status, found.evidence) == ("skipped", None)


def test_one_tensor_on_the_target_makes_it_the_targets_op() -> None:
    assert verdict(call("aten::missing", spec(device="cpu"), spec())).status == "unsupported"
    moved = call("aten::missing", spec(device="cpu"), outputs=(spec(),))
    assert verdict(moved).status == "unsupported"


def test_an_op_without_tensors_is_judged() -> None:
    bare = msgspec.structs.replace(call("aten::missing"), inputs=())
    assert verdict(bare).status == "unsupported"


@pytest.mark.parametrize(
    ("dtype", "evidence"), [("float64", "database"), ("complex128", "inferred")]
)
def test_wide_dtypes_on_the_target_are_unsupported_even_with_a_kernel(
    dtype: str, evidence: str
) -> None:
    wide = spec(dtype=dtype)
    for op in (call("aten::mm", wide), call("aten::mm", outputs=(wide,))):
        for target in (TORCH_29, WITH_FALLBACK):
            found = verdict(op, target)
            assert (found.status, found.evidence) == ("unsupported", evidence)
            assert dtype in found.reason
    assert wide_dtypes(call("aten::mm", wide, wide)) == [dtype]


def test_float64_on_the_host_is_the_users_business() -> None:
    host = spec((), "float64", device="cpu")
    assert verdict(call("aten::mm", spec(), host)).status == "native"


def test_sparse_tensors_are_looked_up_under_their_own_key() -> None:
    sparse = spec(layout="sparse_coo")
    assert verdict(call("aten::mm", sparse)).status == "unsupported"
    assert verdict(call("aten::add", sparse)).status == "native"


def test_the_variable_does_not_serve_sparse_tensors_nor_wide_dtypes() -> None:
    assert variable_serves(call("aten::missing"), "2.9.1", KNOWN, "2.13.0")
    assert not variable_serves(
        call("aten::missing", spec(layout="sparse_coo")), "2.9.1", KNOWN, "2.13.0"
    )
    assert not variable_serves(
        call("aten::missing", spec(dtype="float64")), "2.9.1", KNOWN, "2.13.0"
    )


def test_a_loop_in_the_data_ends() -> None:
    assert variable_serves(call("aten::loop"), "2.9.1", KNOWN, "2.13.0")
