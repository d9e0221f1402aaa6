"""Fingerprints hold no line numbers, machine paths, versions or measured values."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scanner.capture.ledger import Captured
from scanner.judge.contradictions import contradictions
from scanner.judge.findings import op_findings, problem_findings
from scanner.judge.measured import with_measurements
from scanner.judge.models import judge_model
from scanner.judge.rules import Problem
from scanner.judge.verdicts import judge
from scanner.judge.whole import with_whole
from scanner.probe.whole import Whole
from scanner.records import Accumulated, Divergence, Finding, Measurement, Target, Variant
from scanner.source.check import RELEASE, Checker
from scanner.source.module import Module
from scanner.source.rules import RULES
from tests.samples import MISSING, RAISES, SILENT, Facts, at, call, graph, spec

KNOWN = Facts({"aten::missing": MISSING, "aten::raising": RAISES, "aten::silent": SILENT})
versions = st.sampled_from(["2.8.0", "2.9.1", "2.14.0"])
systems = st.sampled_from([None, "14.7", "15.5", "26.1"])
paths = st.sampled_from(["model.py", "/home/ann/net/model.py", "/Users/bo/x/model.py"])
lines = st.lists(st.integers(1, 10_000), min_size=4, max_size=4, unique=True).map(sorted)
numbers = st.floats(min_value=0, max_value=1e9)


def prints(found: Any) -> list[tuple[str, str]]:
    return sorted((each.rule, each.fingerprint) for each in found)


def scanned(at_lines: list[int], file: str, version: str, macos: str | None) -> list[Finding]:
    target = Target(framework="torch", version=version, macos=macos)
    first, second, third, fourth = (at(line, file=file, module="enc.0") for line in at_lines)
    found = graph(
        call("aten::missing", locations=(first, second)),
        call("aten::raising", locations=(third,)),
        call("aten::silent", locations=(fourth,)),
        call("other::op", locations=(fourth,)),
    )
    return list(op_findings(found, target, judge(found, target, KNOWN), KNOWN))


@given(lines, paths, versions, systems)
def test_of_the_database(at_lines: list[int], file: str, version: str, macos: str | None) -> None:
    usual = scanned([1, 2, 3, 4], "model.py", "2.9.1", None)
    assert len(usual) == 5
    assert prints(scanned(at_lines, file, version, macos)) == prints(usual)


def measured(line: int, file: str, version: str, error: float, seconds: float) -> list[Finding]:
    target = Target(framework="torch", version=version)
    place = at(line, file=file, module="enc.0")
    statuses = ("wrong", "nan", "crash", "slow", "unsupported")
    ops = [call("aten::silent", spec((size,)), locations=(place,)) for size in range(1, 6)]
    captured = Captured(name="Net", entry="Net", graphs={"p": graph(*ops)})
    model = judge_model(captured, [target], {target.id: "p"}, KNOWN)

    def outcome(asked: Any) -> Measurement:
        status: Any = statuses[asked.inputs[0].shape[0] - 1]
        detail = {"reason": f"error {error}", "share": {"device_s": seconds, "cpu_s": seconds}}
        return Measurement(device="mps", status=status, detail=detail)

    def variants(asked: Any) -> tuple[Variant, ...]:
        return (Variant(dtype="float16", measurement=outcome(asked), error=error, overflows=3),)

    found = with_measurements(model, "mps", outcome, target.id, variants=variants)
    first = Divergence(
        op="aten::mm", phase="loss", step=2, kind="wrong", message=f"{error}", location=place
    )
    run = Accumulated(device="mps", asked=3, first=first)
    found = with_whole(found, Whole(accumulated=run), target.id)
    against = contradictions(model.ops, "mps", lambda row: outcome(ops[0]), target.id)
    return [*found.findings, *against]


@given(st.integers(1, 999), paths, versions, numbers, numbers)
def test_of_a_device(line: int, file: str, version: str, error: float, seconds: float) -> None:
    usual = measured(1, "model.py", "2.9.1", 0.5, 1.0)
    assert {"OPS106", "OPS201", "OPS202", "OPS203", "OPS204", "OPS207", "OPS301"} <= {
        each.rule for each in usual
    }
    assert prints(measured(line, file, version, error, seconds)) == prints(usual)


def test_each_way_to_fail_is_another_finding() -> None:
    found = measured(1, "model.py", "2.9.1", 0.5, 1.0)
    variants = [each.fingerprint for each in found if each.rule == "OPS207"]
    assert len(set(variants)) == len(variants) == 5


@given(st.sampled_from(["", "/home/ann/", "/Users/bo/x/", "C:\\net\\"]))
def test_of_scan_problems(folder: str) -> None:
    usual = problem_findings(Problem(name="model.py", unreadable=True))
    moved = problem_findings(Problem(name=f"{folder}model.py", unreadable=True))
    assert prints(moved) == prints(usual)


CODE = """import torch


def train(model):
    model.cuda()
    x = torch.zeros(3, dtype=torch.float64, device="cuda")
    model.cuda()
    return x.cuda()
"""


def read(text: str, file: str, version: str, macos: str | None) -> list[Finding]:
    target = Target(framework="torch", version=version, macos=macos, chip="M3")
    return list(Checker(RULES, (target,)).findings(Module(text, file)))


@given(st.integers(0, 50), paths, versions, systems, st.booleans())
def test_of_source_rules(
    down: int, file: str, version: str, macos: str | None, commented: bool
) -> None:
    text = "\n" * down + CODE
    if commented:
        text = text.replace("()\n", "()  # opscan: ignore[OPS601] known\n")
    usual = read(CODE, "model.py", "2.9.1", None)
    assert len({each.fingerprint for each in usual}) == len(usual) > 3
    assert prints(read(text, file, version, macos)) == prints(usual)


@given(versions, systems)
def test_source_rules_about_a_target_know_its_machine_only(version: str, macos: str | None) -> None:
    target = Target(framework="torch", version=version, macos=macos, chip="M3", ram=16)
    assert RELEASE.sub("", target.id) == ",chip=M3,ram=16"
    assert RELEASE.sub("", "tensorflow==2.18.0,tensorflow-metal==1.2.0,macos=15.5") == ""
