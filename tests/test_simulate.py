"""Every target of a scan on its own release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scanner.judge.measured import call_of
from scanner.judge.rows import coverage, merge_rows
from scanner.probe.plan import config_key
from scanner.records import Capture, Measurement, ModelReport, OpCall, Status, Verdict
from scanner.simulate import simulate
from tests.samples import TORCH_29, TORCH_214, call, graph


def test_each_target_is_asked_about_what_it_dispatches_and_answers_for_itself() -> None:
    known = {
        target: Verdict(target=target.id, status="native", evidence="database", reason="")
        for target in (TORCH_29, TORCH_214)
    }
    old, new = graph(call("aten::exp"), call("aten::t")), graph(call("aten::exp"))
    rows = merge_rows(
        [(TORCH_29, old, [known[TORCH_29]] * 2), (TORCH_214, new, [known[TORCH_214]])]
    )
    model = ModelReport(
        name="Net", source="net.py", entry="Net", mode="train",
        capture=Capture(method="meta", complete=True), ops=rows, findings=(),
        coverage=coverage(rows),
    )  # fmt: skip
    asked: dict[str, list[str]] = {}

    def run(calls: Sequence[OpCall], device: str) -> Mapping[str, Measurement]:
        asked[device] = [each.op for each in calls]
        status: Status = "wrong" if "2.9.1" in device else "native"
        return {config_key(each): Measurement(device=device, status=status) for each in calls}

    (found,) = simulate([model], (TORCH_29, TORCH_214), run)
    assert asked == {
        f"metal-sim:{TORCH_29.id}": ["aten::exp", "aten::t"],
        f"metal-sim:{TORCH_214.id}": ["aten::exp"],
    }
    assert [verdict.status for verdict in found.ops[0].verdicts] == ["wrong", "native"]
    assert {finding.target for finding in found.findings} == {TORCH_29.id}
    assert call_of(found.ops[1]).op == "aten::t"
