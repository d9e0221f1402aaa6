from __future__ import annotations

from typing import Any

import pytest

from opdb.issues.match import Match
from opdb.issues.records import Issue
from scanner.judge.findings import op_findings
from scanner.judge.verdicts import judge
from scanner.records import Finding, OpGraph, Target, Verdict
from tests.samples import KERNEL, MISSING, TORCH_29, Facts, at, call, graph


def issue(**fields: Any) -> Issue:
    given = {
        "id": "mm-odd",
        "title": "odd sizes are left out",
        "ops": ("mm",),
        "effect": "wrong-values",
        "torch": ("<3",),
        "confidence": "stated",
        "links": ("https://github.com/pytorch/pytorch/issues/1",),
        "hits": (),
    }
    return Issue(**{**given, **fields})


def judged(
    *matches: Match, fact: dict[str, Any] = KERNEL, target: Target = TORCH_29
) -> tuple[Verdict, tuple[Finding, ...]]:
    one: OpGraph = graph(call("aten::mm"))
    known = Facts({"aten::mm": fact}, {"aten::mm": matches})
    verdicts = judge(one, target, known)
    return verdicts[0], op_findings(one, target, verdicts, known)


@pytest.mark.parametrize(
    ("effect", "status", "rule"),
    [
        ("wrong-values", "wrong", "OPS211"),
        ("wrong-gradients", "wrong", "OPS212"),
        ("nan", "nan", "OPS213"),
        ("crash", "crash", "OPS214"),
        ("hang", "crash", "OPS214"),
        ("unsupported", "unsupported", "OPS108"),
        ("fallback", "fallback", "OPS109"),
        ("slow", "slow", "OPS302"),
        ("memory", "native", "OPS401"),
    ],
)
def test_what_is_known_becomes_the_verdict_and_one_finding(
    effect: str, status: str, rule: str
) -> None:
    verdict, findings = judged(Match(issue(effect=effect), "yes"))
    assert verdict.status == status
    assert verdict.evidence == ("database" if status == "native" else "issue")
    assert [finding.rule for finding in findings] == [rule]
    assert "[mm-odd]" in findings[0].message
    assert findings[0].links == ("https://github.com/pytorch/pytorch/issues/1",)


def test_of_several_the_worst_decides_and_each_is_reported() -> None:
    slow = issue(id="mm-slow", effect="slow")
    verdict, findings = judged(Match(slow, "yes"), Match(issue(fixed_in="2.10.0"), "yes"))
    assert (verdict.status, verdict.fixed_in) == ("wrong", "2.10.0")
    assert {finding.rule for finding in findings} == {"OPS211", "OPS302"}
    assert len({finding.fingerprint for finding in findings}) == 2


def test_what_may_apply_is_a_note_and_no_verdict() -> None:
    verdict, findings = judged(Match(issue(macos=("<15",)), "maybe"))
    assert verdict.status == "native"
    assert [finding.severity for finding in findings] == ["note"]
    assert "on macOS <15" in findings[0].message


def test_what_depends_on_the_unseen_is_a_note_that_says_on_what() -> None:
    verdict, (finding,) = judged(Match(issue(unseen="an element is NaN"), "maybe"))
    assert (verdict.status, finding.severity) == ("native", "note")
    assert "in torch 2.9.1 where an element is NaN: odd" in finding.message


def test_what_depends_on_the_unseen_is_said_once_for_a_model() -> None:
    calls = [call(op, locations=(at(line),)) for op, line in (("aten::mm", 3), ("aten::bmm", 7))]
    one: OpGraph = graph(*calls)
    matches = (Match(issue(unseen="an element is NaN"), "maybe"),)
    sure = (Match(issue(id="mm-sure"), "yes"),)
    ops = {"aten::mm": KERNEL, "aten::bmm": KERNEL}
    for known, expected in (
        (Facts(ops, dict.fromkeys(ops, matches)), [("aten::mm", 3)]),
        (Facts(ops, dict.fromkeys(ops, sure)), [("aten::mm", 3), ("aten::bmm", 7)]),
    ):
        found = op_findings(one, TORCH_29, judge(one, TORCH_29, known), known)
        assert [(each.op, each.location and each.location.line) for each in found] == expected


def test_an_unverified_range_warns() -> None:
    _, findings = judged(Match(issue(confidence="unverified"), "yes"))
    assert [finding.severity for finding in findings] == ["warning"]
    assert "not verified" in findings[0].remedy


def test_an_op_without_a_kernel_keeps_its_verdict() -> None:
    verdict, findings = judged(Match(issue(), "yes"), fact=MISSING)
    assert verdict.status == "unsupported"
    assert [finding.rule for finding in findings] == ["OPS101"]


def test_simulated_conditions_say_so() -> None:
    verdict, _ = judged(Match(issue(effect="unsupported", evidence="simulated"), "yes"))
    assert (verdict.status, verdict.evidence) == ("unsupported", "simulated")


@pytest.mark.parametrize(
    ("helps", "said"),
    [(False, "_FALLBACK=1 does not help."), (True, "_FALLBACK=1 avoids this.")],
)
def test_a_refusal_says_whether_the_variable_helps(helps: bool, said: str) -> None:
    refused = issue(effect="unsupported", fallback_helps=helps)
    _, (finding,) = judged(Match(refused, "yes"))
    assert finding.remedy.endswith(said)
