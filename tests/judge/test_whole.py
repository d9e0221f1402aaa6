"""Whole steps on a device, in the report of a model."""

from __future__ import annotations

import msgspec
import pytest

from scanner.judge.gate import Gate, exit_code
from scanner.judge.whole import with_whole
from scanner.probe.whole import Whole
from scanner.records import Accumulated, BatchSweep, Divergence, ModelReport
from tests.report.sample_report import clean_report
from tests.samples import at

FOUND = Divergence(
    op="aten::mm",
    phase="backward",
    step=2,
    kind="wrong",
    message="relative error 0.01",
    location=at(12, "h = self.up(x)", "layers.0"),
)


def walked(**found: object) -> ModelReport:
    run = Accumulated(device="cuda", asked=3, steps=3, **found)  # type: ignore[arg-type]
    return with_whole(clean_report().models[0], Whole(accumulated=run), None)


@pytest.mark.parametrize(
    ("field", "kind", "rule", "code"),
    [
        ("first", "wrong", "OPS204", 1),
        ("first_nan", "nan", "OPS205", 1),
        ("drift", "drift", "OPS206", 0),
        ("ended", "raises", "OPS208", 1),
        ("ended", "crash", "OPS208", 1),
        ("ended", "hang", "OPS208", 1),
    ],
)
def test_each_kind_has_its_rule(field: str, kind: str, rule: str, code: int) -> None:
    found = msgspec.structs.replace(FOUND, kind=kind)
    model = walked(**{field: found})
    [finding] = model.findings
    assert (finding.rule, finding.op, finding.location) == (rule, "aten::mm", FOUND.location)
    assert finding.target == "device=cuda"
    assert "aten::mm in the backward pass of step 2" in finding.message
    assert "relative error 0.01" in finding.message
    assert exit_code([model], Gate()) == code


def test_an_op_that_makes_nan_is_reported_once() -> None:
    model = walked(first=FOUND, first_nan=msgspec.structs.replace(FOUND, kind="nan"))
    assert [finding.rule for finding in model.findings] == ["OPS205"]


def test_two_ops_are_two_findings() -> None:
    other = msgspec.structs.replace(FOUND, op="aten::exp", kind="nan")
    rules = [finding.rule for finding in walked(first=FOUND, first_nan=other).findings]
    assert rules == ["OPS205", "OPS204"]


def test_the_fingerprint_holds_neither_step_nor_figures() -> None:
    later = msgspec.structs.replace(
        FOUND, step=3, message="another", location=at(40, "", "layers.0")
    )
    one, other = (walked(first=each).findings[0] for each in (FOUND, later))
    assert one.fingerprint == other.fingerprint


def test_steps_that_are_missing_make_a_scan_incomplete() -> None:
    assert exit_code([walked(incomplete="out of memory")], Gate()) == 3
    assert exit_code([walked()], Gate()) == 0


def test_an_unknown_batch_dimension_does_not() -> None:
    sweep = BatchSweep(device="cuda", asked=(8,), incomplete="the batch dimension is unknown")
    model = with_whole(clean_report().models[0], Whole(batches=sweep), None)
    assert exit_code([model], Gate()) == 0


def test_a_bug_of_ours_is_a_failed_scan() -> None:
    model = with_whole(clean_report().models[0], Whole(traceback="KeyError"), None)
    assert [finding.rule for finding in model.findings] == ["OPS904"]
    assert exit_code([model], Gate()) == 2
