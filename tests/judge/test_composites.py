"""A composite op is judged by what it calls for the arguments of the configuration."""

from typing import Any

import pytest

from scanner.judge.findings import op_findings
from scanner.judge.verdicts import judge
from scanner.records import Finding, OpGraph, Target, Verdict
from tests.samples import COMPOSITE, KERNEL, MISSING, SILENT, Facts, call, graph

PINV, EIGH, HELPER, SVD = "aten::pinv", "aten::eigh", "aten::_eigh", "aten::svd"
OLD = {
    PINV: COMPOSITE | {"leads": {EIGH: "maybe", SVD: "maybe"}},
    EIGH: COMPOSITE | {"leads": {HELPER: "always"}},
    HELPER: MISSING | {"fixed_in": "2.15.0", "links": ("https://a/1",)},
    SVD: SILENT | {"fixed_in": "2.14.0"},
}
HERMITIAN = {PINV: (EIGH,), EIGH: (HELPER,)}
ELSE = {PINV: ("aten::mm",)}


def verdict(inner: dict[str, Any], facts: Any = OLD, **target: Any) -> Verdict:
    asked = Target(framework="torch", version="2.5.1", **target)
    return judge(graph(call(PINV, inner=inner)), asked, Facts(facts))[0]


def found_on(captured: OpGraph, target: Target) -> tuple[Finding, ...]:
    facts = Facts(OLD)
    return op_findings(captured, target, judge(captured, target, facts), facts)


def test_the_reason_shows_the_chain_and_what_is_at_its_end() -> None:
    found = verdict(HERMITIAN)
    assert (found.status, found.evidence, found.fixed_in) == ("unsupported", "inferred", "2.15.0")
    assert "pinv -> eigh -> _eigh; no kernel is registered for MPS" in found.reason
    assert found.links == ("https://a/1",)


def test_a_fallback_below_is_one_of_the_op() -> None:
    found = verdict({PINV: (SVD,)})
    assert (found.status, found.evidence, found.fixed_in) == ("fallback", "inferred", "2.14.0")


def test_arguments_that_spare_what_is_missing_leave_it_composite() -> None:
    found = verdict(ELSE)
    assert (found.status, found.evidence) == ("composite", "inferred")
    assert "with these arguments it calls nothing that MPS lacks" in found.reason


def test_without_a_run_it_is_not_known_whether_what_is_missing_is_called() -> None:
    found = verdict({})
    assert (found.status, found.evidence) == ("unknown", None)
    assert "whether it calls pinv -> eigh -> _eigh" in found.reason


def test_an_open_fallback_is_said_and_runs() -> None:
    found = verdict({}, OLD | {HELPER: KERNEL})
    assert (found.status, found.evidence) == ("composite", "inferred")
    assert "whether it calls pinv -> svd" in found.reason


@pytest.mark.parametrize(("inner", "status"), [(HERMITIAN, "fallback"), ({}, "composite")])
def test_the_variable_serves_what_is_below(inner: dict[str, Any], status: str) -> None:
    assert verdict(inner, fallback=True).status == status


def test_what_leads_to_nothing_missing_keeps_its_evidence() -> None:
    facts = OLD | {HELPER: KERNEL, SVD: KERNEL}
    assert (verdict({}, facts).status, verdict({}, facts).evidence) == ("composite", "database")


def test_the_finding_says_that_the_variable_helps() -> None:
    graph_of_one = graph(call(PINV, inner=HERMITIAN))
    (finding,) = found_on(graph_of_one, Target(framework="torch", version="2.5.1"))
    assert finding.rule == "OPS101"
    assert "PYTORCH_ENABLE_MPS_FALLBACK=1" in finding.remedy
    (served,) = found_on(graph_of_one, Target(framework="torch", version="2.5.1", fallback=True))
    assert served.rule == "OPS103"
