from __future__ import annotations

import msgspec

from scanner.judge.findings import op_findings, problem_findings
from scanner.judge.rules import Problem
from scanner.judge.verdicts import judge
from scanner.records import Finding, OpGraph, Step, Target
from tests.samples import (
    KERNEL,
    MISSING,
    RAISES,
    SILENT,
    TORCH_29,
    TORCH_214,
    Facts,
    at,
    call,
    graph,
    partial,
    spec,
)

KNOWN = Facts(
    {
        "aten::mm": KERNEL,
        "aten::_to_copy": KERNEL,
        "aten::mul.Tensor": KERNEL,
        "aten::missing": MISSING | {"fixed_in": "2.14.0"},
        "aten::raising": RAISES,
        "aten::silent": SILENT,
    }
)
WITH_FALLBACK = msgspec.structs.replace(TORCH_29, fallback=True)
WIDE = spec(dtype="float64")


def findings(found: OpGraph, target: Target = TORCH_29) -> tuple[Finding, ...]:
    return op_findings(found, target, judge(found, target, KNOWN), KNOWN)


def rules(found: OpGraph, target: Target = TORCH_29) -> list[tuple[str, str]]:
    return [(each.rule, each.op) for each in findings(found, target)]


def test_each_status_has_its_rule() -> None:
    ops = graph(
        call("aten::mm"),
        call("aten::missing"),
        call("aten::raising"),
        call("aten::silent"),
        call("other::op"),
    )
    common = [("OPS102", "aten::silent"), ("OPS105", "other::op")]
    raises = ("OPS101", "aten::raising")
    assert rules(ops) == [("OPS101", "aten::missing"), raises, *common]
    assert rules(ops, WITH_FALLBACK) == [("OPS103", "aten::missing"), raises, *common]


def test_severities() -> None:
    ops = graph(call("aten::missing"), call("aten::silent"), call("other::op"))
    assert [each.severity for each in findings(ops)] == ["error", "warning", "note"]


def test_the_remedy_names_what_helps() -> None:
    missing, raising = findings(graph(call("aten::missing"), call("aten::raising")))
    assert "torch 2.14.0" in missing.remedy
    assert "PYTORCH_ENABLE_MPS_FALLBACK=1" in missing.remedy
    assert "PYTORCH_ENABLE_MPS_FALLBACK" not in raising.remedy
    assert ".cpu()" in raising.remedy
    assert missing.fixed_in == "2.14.0"


def test_only_what_brings_float64_in_is_reported() -> None:
    narrow = spec()
    assert rules(
        graph(
            call("aten::_to_copy", narrow, outputs=(WIDE,)),
            call("aten::mul.Tensor", WIDE, narrow, outputs=(WIDE,)),
        )
    ) == [("OPS104", "aten::_to_copy")]


def test_float64_that_nothing_brings_in_is_reported_where_it_is_used() -> None:
    found = graph(call("aten::mul.Tensor", WIDE, outputs=(WIDE,)))
    assert rules(found) == [("OPS104", "aten::mul.Tensor")]


def test_modules_and_shapes_at_one_line_are_one_finding() -> None:
    found = graph(
        call("aten::missing", spec((8, 8)), calls=2, locations=(at(5, module="layers.0.mlp"),)),
        call("aten::missing", spec((9, 9)), calls=3, locations=(at(5, module="head"),)),
    )
    (only,) = findings(found)
    assert only.calls == 5
    assert only.location == at(5, module="layers.0.mlp")


def test_other_lines_ranks_and_dtypes_are_findings_of_their_own() -> None:
    found = graph(
        call("aten::missing", locations=(at(5), at(6))),
        call("aten::missing", spec((4,)), locations=(at(5),)),
        call("aten::missing", spec(dtype="float16"), locations=(at(5),)),
    )
    lines = [each.location.line for each in findings(found) if each.location]
    assert lines == [5, 6, 5, 5]
    assert len({each.fingerprint for each in findings(found)}) == 4


def test_calls_are_counted_by_place() -> None:
    op = call("aten::missing", calls=3, locations=(at(5), at(6)))
    steps = tuple(Step(op=0, location=place, reads=(), writes=()) for place in (0, 1, 1))
    first, second = findings(graph(op, steps=steps))
    assert (first.calls, second.calls) == (1, 2)


def test_an_op_without_a_place_is_still_reported() -> None:
    (only,) = findings(graph(call("aten::missing", locations=(), calls=7)))
    assert (only.location, only.calls) == (None, 7)


def test_fingerprint_survives_moved_lines_other_files_and_releases() -> None:
    here = graph(call("aten::missing", locations=(at(5, module="layers.0"),)))
    there = graph(call("aten::missing", locations=(at(99, module="layers.3", file="other.py"),)))
    (first,) = findings(here)
    assert findings(there)[0].fingerprint == first.fingerprint
    assert findings(here, TORCH_214)[0].fingerprint == first.fingerprint
    assert len(first.fingerprint) == 64


def test_fingerprint_changes_with_module_machine_and_rule() -> None:
    here = graph(call("aten::missing", locations=(at(5, module="encoder"),)))
    there = graph(call("aten::missing", locations=(at(5, module="decoder"),)))
    on_m1 = msgspec.structs.replace(TORCH_29, chip="M1")
    prints = {
        findings(here)[0].fingerprint,
        findings(there)[0].fingerprint,
        findings(here, on_m1)[0].fingerprint,
        findings(here, WITH_FALLBACK)[0].fingerprint,
    }
    assert len(prints) == 4


def test_occurrences_are_told_apart_by_order_not_by_line() -> None:
    before = findings(graph(call("aten::missing", locations=(at(5), at(9)))))
    after = findings(graph(call("aten::missing", locations=(at(15), at(19)))))
    assert [each.fingerprint for each in before] == [each.fingerprint for each in after]
    assert before[0].fingerprint != before[1].fingerprint


def problem_rules(problem: Problem) -> list[str]:
    return [each.rule for each in problem_findings(problem)]


def test_each_problem_has_one_rule() -> None:
    assert problem_rules(Problem(name="Net", message="it raised")) == ["OPS901"]
    assert problem_rules(Problem(name="Net", unreadable=True)) == ["OPS903"]
    assert problem_rules(Problem(name="Net", unreadable=True, internal=True)) == ["OPS904"]
    missed = partial("the backward pass", "it raised")
    assert problem_rules(Problem(name="Net", capture=missed)) == ["OPS902"]
    whole = msgspec.structs.replace(missed, complete=True)
    assert problem_rules(Problem(name="Net", capture=whole)) == []
