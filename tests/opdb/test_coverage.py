"""The support matrix, against facts that the research page and the wheels state."""

from __future__ import annotations

import pytest

from opdb.coverage import Row, coverage
from opdb.upstream import expected


def rows(release: str, name: str, **options: object) -> dict[tuple[str, str], Row]:
    """(dtype, direction) → row of an entry without a variant."""
    found = coverage(release, **options)  # type: ignore[arg-type]
    return {
        (row.dtype, row.direction): row for row in found if (row.name, row.variant) == (name, "")
    }


def test_the_worst_of_the_overloads_that_an_entry_reaches_decides() -> None:
    old, new = rows("2.5.1", "kthvalue"), rows("2.15.0", "kthvalue")
    assert old["float32", "forward"].status == "unsupported"
    assert old["float32", "forward"].chain == ("aten::kthvalue", "aten::kthvalue.values")
    assert new["float32", "forward"].status in {"native", "composite"}


@pytest.mark.parametrize(
    ("release", "variant", "status", "chain"),
    [
        ("2.5.1", "hermitian", "unsupported", ["linalg_eigh", "_linalg_eigh"]),
        ("2.13.0", "hermitian", "unsupported", ["linalg_eigh", "_linalg_eigh"]),
        ("2.13.0", "singular", "fallback", ["svd", "linalg_svd"]),
    ],
)
def test_variants_of_an_entry_decide_what_its_composite_calls(
    release: str, variant: str, status: str, chain: list[str]
) -> None:
    (row,) = (
        row
        for row in coverage(release)
        if (row.name, row.variant) == ("linalg.pinv", variant)
        and (row.dtype, row.direction) == ("float32", "forward")
    )
    assert (row.status, row.evidence) == (status, "inferred")
    op = "linalg_pinv.atol_rtol_tensor"
    assert row.chain[:3] == tuple(f"aten::{name}" for name in [op, *chain])


def test_a_composite_that_reaches_nothing_missing_any_more_is_one() -> None:
    for row in coverage("2.15.0"):
        if row.name == "linalg.pinv" and row.dtype == "float32":
            assert row.status == "composite"


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_no_release_has_double_precision(dtype: str) -> None:
    for release in ("2.0.1", "2.15.0"):
        assert rows(release, "add")[dtype, "forward"].status == "unsupported"


def test_issues_count_only_as_evidence_that_was_asked_for() -> None:
    with_issues = {row.evidence for row in coverage("2.9.1", "15.5")}
    without = {row.evidence for row in coverage("2.9.1", "15.5", ("database",))}
    assert "issue" in with_issues
    assert without <= {"database", None}


def test_what_pytorchs_tests_expect() -> None:
    known = expected("2.9.1", "15.5")
    assert known is not None
    assert known.of("abs", "", "float64", "forward") == "xfail"
    assert known.of("abs", "", "float32", "forward") == "pass"
    assert expected("2.5.1", "15.5") is None
