from __future__ import annotations

import msgspec

from scanner.judge.gate import Gate
from scanner.judge.merge import Named, merge_reports
from scanner.records import Finding, Location, Report, SourceScan
from tests.report.sample_report import clean_report, report
from tests.samples import TORCH_29, TORCH_214


def merged(*reports: Report) -> tuple[Report, tuple[str, ...]]:
    named = [Named(f"{number}.json", each) for number, each in enumerate(reports)]
    return merge_reports(named, Gate())


def test_shards_are_united_and_weighed_anew() -> None:
    found, said = merged(clean_report(), report())
    assert found.models == (*clean_report().models, *report().models)
    assert (found.summary, found.exit_code) == (report().summary, 2)
    assert [each["report"] for each in found.environment["merged"]] == ["0.json", "1.json"]
    assert said == ()


def test_the_same_report_twice_adds_nothing() -> None:
    found, said = merged(report(), report())
    assert (found.models, found.targets, said) == (report().models, report().targets, ())


def test_other_targets_do_not_contradict() -> None:
    found, _ = merged(report(TORCH_29), report(TORCH_214))
    assert [target.version for target in found.targets] == ["2.9.1", "2.14.0"]
    said = merged(report(TORCH_29), report(TORCH_214))[1]
    assert not any("ExactGP" in each for each in said)


def test_other_targets_join_a_model_as_one_scan_would() -> None:
    """Rows may stand in another order, since one scan weaves the targets' graphs together."""
    found, _ = merged(report(TORCH_29), report(TORCH_214))
    together = report(TORCH_29, TORCH_214)
    for ours, theirs in zip(found.models, together.models, strict=True):
        assert {(row.op, row.verdicts) for row in ours.ops} == {
            (row.op, row.verdicts) for row in theirs.ops
        }
        assert ours.coverage.by_target == theirs.coverage.by_target
        assert {f.fingerprint for f in ours.findings} == {f.fingerprint for f in theirs.findings}
    assert found.summary == together.summary


def test_the_order_of_execution_points_at_the_merged_rows() -> None:
    singles = [report(TORCH_29), report(TORCH_214)]
    for model, *parts in zip(
        merged(*singles)[0].models, *(each.models for each in singles), strict=True
    ):
        said = [[model.ops[row].op for row in order.rows] for order in model.order]
        there = [[one.ops[row].op for row in order.rows] for one in parts for order in one.order]
        assert said == there


def test_contradictions_are_kept_and_said() -> None:
    first = clean_report()
    [model] = first.models
    rows = (msgspec.structs.replace(model.ops[0], calls=7), *model.ops[1:])
    other = msgspec.structs.replace(first, models=(msgspec.structs.replace(model, ops=rows),))
    found, said = merged(first, other)
    assert len(found.models) == 2
    assert said == ("reports differ about Net in model.py for torch==2.9.1: both kept",)


def test_source_findings_stand_once_unless_one_report_has_them_twice() -> None:
    def at(line: int) -> Finding:
        place = Location(file="a.py", line=line)
        return Finding(
            rule="OPS601",
            severity="error",
            target="",
            op="",
            message="m",
            remedy="",
            location=place,
            fingerprint="f",
        )

    def having(*findings: Finding) -> Report:
        source = SourceScan(files=1, findings=findings)
        return msgspec.structs.replace(clean_report(), source=source)

    found, _ = merged(having(at(1), at(1)), having(at(1), at(2)))
    assert found.source is not None
    assert [each.location.line for each in found.source.findings if each.location] == [1, 1, 2]
    assert found.summary.errors == 3
    assert found.exit_code == 1
