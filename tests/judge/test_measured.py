"""What a device did, in the report of a model."""

from __future__ import annotations

import msgspec
import pytest

from scanner.judge.gate import Gate, exit_code, summarize
from scanner.judge.measured import call_of, with_measurements, with_simulation
from scanner.judge.rows import coverage, merge_rows
from scanner.judge.rules.measured import RULES
from scanner.probe.plan import config_key
from scanner.records import Capture, Measurement, ModelReport, OpCall, Status, Variant, Verdict
from tests.samples import TORCH_29, TORCH_214, call, graph, spec

NATIVE = Verdict(target=TORCH_29.id, status="native", evidence="database", reason="a kernel")


def model() -> ModelReport:
    ops = (call("aten::exp"), call("aten::mm", spec(), spec(name="mat2")))
    rows = merge_rows([(TORCH_29, graph(*ops), [NATIVE, NATIVE])])
    return ModelReport(
        name="Net",
        source="net.py",
        entry="Net",
        mode="train",
        capture=Capture(method="meta", complete=True),
        ops=rows,
        findings=(),
        coverage=coverage(rows),
    )


def measured(status: Status, target: str | None = None) -> ModelReport:
    """The model after the device ran `exp` with this status and was not asked about `mm`."""
    result = Measurement(device="cuda (H200)", status=status, detail={"reason": "because"})
    known = {config_key(call_of(model().ops[0])): result}
    return with_measurements(model(), "cuda", lambda one: known.get(config_key(one)), target)


def test_a_row_is_the_configuration_it_was_made_from() -> None:
    original = call("aten::mm", spec(), spec(name="mat2"))
    row = merge_rows([(TORCH_29, graph(original), [NATIVE])])[0]
    assert config_key(call_of(row)) == config_key(original)


@pytest.mark.parametrize(
    ("status", "rule", "code"),
    [
        ("unsupported", "OPS106", 1),
        ("fallback", "OPS107", 0),
        ("wrong", "OPS201", 1),
        ("nan", "OPS202", 1),
        ("crash", "OPS203", 1),
        ("slow", "OPS301", 0),
    ],
)
def test_each_bad_outcome_is_a_finding(status: Status, rule: str, code: int) -> None:
    report = measured(status)
    (finding,) = report.findings
    assert (finding.rule, finding.op) == (rule, "aten::exp")
    assert "because" in finding.message
    assert finding.target == "device=cuda"
    assert exit_code([report], Gate()) == code


def test_every_rule_is_reached() -> None:
    assert {rule.id for rule in RULES} == {
        measured(status).findings[0].rule
        for status in ("unsupported", "fallback", "wrong", "nan", "crash", "slow")
    }


@pytest.mark.parametrize("status", ["native", "slow", "fallback", "unknown", "wrong", "nan"])
def test_a_variant_that_fails_is_a_warning(status: Status) -> None:
    def variants(one: OpCall) -> tuple[Variant, ...]:
        if one.op != "aten::mm":
            return ()
        result = Measurement(device="d", status=status, detail={"reason": "inf in output 0"})
        return (Variant(dtype="float16", measurement=result),)

    fine = Measurement(device="d", status="native")
    report = with_measurements(model(), "cuda", lambda _: fine, None, variants=variants)
    assert report.ops[1].variants[0].dtype == "float16"
    found = [(finding.rule, finding.severity, finding.op) for finding in report.findings]
    bad = status in {"wrong", "nan"}
    assert found == ([("OPS207", "warning", "aten::mm")] if bad else [])
    for finding in report.findings:
        assert finding.message == (
            f"aten::mm in float16 on cuda is {status} (in float32: native): inf in output 0"
        )


def test_an_overflow_in_half_precision_alone_is_a_warning() -> None:
    fine = Measurement(device="d", status="native")
    half = Variant(dtype="float16", measurement=fine, overflows=4)

    def variants(one: OpCall) -> tuple[Variant, ...]:
        return (half,) if one.op == "aten::mm" else ()

    (finding,) = with_measurements(
        model(), "cuda", lambda _: fine, None, variants=variants
    ).findings
    assert finding.rule == "OPS207"
    assert finding.message == (
        "aten::mm overflows in float16: 4 elements are infinite or NaN, which they are not in "
        "float32"
    )


def test_agreement_is_no_finding() -> None:
    report = measured("native")
    assert report.findings == ()
    assert exit_code([report], Gate()) == 0


def test_no_answer_leaves_the_scan_incomplete() -> None:
    report = measured("unknown")
    assert report.findings == ()
    assert not summarize([report]).complete
    assert exit_code([report], Gate()) == 3


def test_another_device_does_not_change_verdicts() -> None:
    assert [row.verdicts for row in measured("wrong").ops] == [row.verdicts for row in model().ops]


def test_the_target_s_own_device_has_the_last_word() -> None:
    first, second = measured("wrong", TORCH_29.id).ops
    assert (first.verdicts[0].status, first.verdicts[0].evidence) == ("wrong", "measured")
    assert second.verdicts == (NATIVE,)
    kept = measured("unknown", TORCH_29.id).ops[0].verdicts
    assert kept == (NATIVE,)


def test_fingerprints_do_not_hold_what_was_measured() -> None:
    first = measured("wrong").findings[0]
    result = Measurement(device="other", status="wrong", detail={"reason": "another text"})
    again = with_measurements(model(), "cuda", lambda one: result, None).findings[0]
    assert first.message != again.message
    assert first.fingerprint == again.fingerprint


def test_a_report_with_measurements_survives_json() -> None:
    report = measured("wrong")
    assert msgspec.json.decode(msgspec.json.encode(report), type=ModelReport) == report


def simulated(
    status: Status, database: Status = "native", detail: dict[str, str] | None = None
) -> ModelReport:
    """`exp`, about which the database says one thing, simulated with another outcome."""
    known = Verdict(target=TORCH_29.id, status=database, evidence="database", reason="known")
    other = msgspec.structs.replace(known, target=TORCH_214.id)
    ops = graph(call("aten::exp"))
    rows = merge_rows([(TORCH_29, ops, [known]), (TORCH_214, ops, [other])])
    finding = measured("unsupported").findings[0]
    findings = (
        msgspec.structs.replace(finding, target=TORCH_29.id),
        msgspec.structs.replace(finding, target=TORCH_214.id),
    )
    before = msgspec.structs.replace(model(), ops=rows, findings=findings)
    result = Measurement(device="metal-sim (…)", status=status, detail=detail or {})
    return with_simulation(before, TORCH_29, lambda _: result)


def test_a_simulation_is_the_verdict_of_its_target_alone() -> None:
    (row,) = simulated("wrong", detail={"reason": "off by one"}).ops
    ours, other = row.verdicts
    assert (ours.status, ours.evidence, ours.reason) == ("wrong", "simulated", "off by one")
    assert (other.status, other.evidence) == ("native", "database")
    assert set(row.simulations) == {TORCH_29.id}
    assert row.measurement is None


def test_a_simulated_fault_is_said_to_be_simulated() -> None:
    (finding,) = [f for f in simulated("wrong").findings if f.rule == "OPS201"]
    assert finding.target == TORCH_29.id
    assert finding.message.startswith("aten::exp is wrong on simulated torch 2.9.1")
    assert "measured" not in finding.message


def test_what_the_database_has_said_is_not_said_twice() -> None:
    report = simulated("unsupported", "unsupported")
    assert len(report.findings) == 2
    assert report.ops[0].verdicts[0].evidence == "simulated"


def test_a_finding_that_the_simulation_refutes_is_dropped() -> None:
    left, contradiction = simulated("native", "unsupported").findings
    assert left.target == TORCH_214.id
    assert (contradiction.rule, contradiction.target) == ("OPS905", TORCH_29.id)
    assert simulated("native", "unsupported").ops[0].verdicts[0].status == "native"


def test_no_answer_of_a_simulator_leaves_the_scan_incomplete() -> None:
    report = simulated("unknown")
    assert report.ops[0].verdicts[0].evidence == "database"
    assert not summarize([report]).complete


def test_agreement_through_a_graph_says_what_it_is_worth() -> None:
    (row,) = simulated("native", detail={"evidence": "simulated-graph"}).ops
    assert "Apple's own rounding is not known" in row.verdicts[0].reason
    (row,) = simulated("native", detail={"evidence": "simulated"}).ops
    assert row.verdicts[0].reason == "agrees with the CPU, the release's own code simulated"


def told_before(status: Status, result: Status) -> list[str]:
    """Rules of a model whose `exp` the database knows by `status`, run on the target itself."""
    stated = Verdict(target=TORCH_29.id, status=status, evidence="database", reason="a table")
    rows = merge_rows([(TORCH_29, graph(call("aten::exp")), [stated])])
    finding = msgspec.structs.replace(
        measured("unsupported").findings[0], rule="OPS101", target=TORCH_29.id
    )
    before = msgspec.structs.replace(model(), ops=rows, findings=(finding,))
    found = Measurement(device="mps", status=result, detail={"reason": "because"})
    after = with_measurements(before, "mps", lambda _: found, TORCH_29.id)
    return [each.rule for each in after.findings]


def test_what_a_device_confirms_is_said_once_and_what_it_refutes_is_dropped() -> None:
    assert told_before("unsupported", "unsupported") == ["OPS101"]
    assert "OPS101" not in told_before("unsupported", "native")
    assert told_before("native", "wrong")[:2] == ["OPS101", "OPS201"]
    assert told_before("unsupported", "unknown")[0] == "OPS101"
