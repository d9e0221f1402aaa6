"""From what capture yields for one model to its part of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scanner.capture.ledger import Captured, NotCaptured
from scanner.judge.findings import op_findings, problem_findings
from scanner.judge.interface import Knowledge
from scanner.judge.rows import call_order, coverage, merge_rows
from scanner.judge.rules import Problem
from scanner.judge.verdicts import judge
from scanner.records import Capture, Coverage, ModelReport, OpGraph, Target

__all__ = ["judge_model", "model_without_graph"]


def judge_model(
    model: Captured,
    targets: Sequence[Target],
    profile_of: Mapping[str, str],
    knowledge: Knowledge,
) -> ModelReport:
    """One model on every target; `profile_of` says which of its graphs each target dispatches."""
    judged = []
    for target in targets:
        graph = model.graphs[profile_of[target.id]]
        judged.append((target, graph, judge(graph, target, knowledge)))
    rows = merge_rows(judged)
    capture = _merged_capture([graph for _, graph, _ in judged])
    findings = [
        finding
        for target, graph, verdicts in judged
        for finding in op_findings(graph, target, verdicts, knowledge)
    ]
    first = judged[0][1]
    return ModelReport(
        name=model.name,
        source=first.source,
        entry=model.entry,
        mode=first.mode,
        capture=capture,
        ops=rows,
        findings=(*findings, *problem_findings(Problem(name=model.name, capture=capture))),
        coverage=coverage(rows),
        order=call_order(judged),
    )


def model_without_graph(failure: NotCaptured, source: str, mode: str) -> ModelReport:
    """A model, or a whole source, of which nothing could be judged."""
    problem = Problem(
        name=failure.name,
        message=_told(failure),
        remedy=failure.remedy,
        unreadable=failure.unreadable,
        internal=bool(failure.traceback),
    )
    return ModelReport(
        name=failure.name,
        source=source,
        entry=failure.entry,
        mode=mode,
        capture=None,
        ops=(),
        findings=problem_findings(problem),
        coverage=Coverage(by_config={}, by_call={}),
    )


def _told(failure: NotCaptured) -> str:
    """Everything that is known about the failure, on one line."""
    message = failure.message.removeprefix(f"{failure.name}: ")
    parts = [message]
    parts += [
        f"tried {each.method}: {each.reason}"
        for each in failure.attempts
        if message not in each.reason
    ]
    if failure.said:
        parts.append(f"it printed: {' | '.join(failure.said)}")
    lines = (line.strip() for part in parts for line in part.splitlines())
    return "; ".join(line for line in lines if line)


def _merged_capture(graphs: Sequence[OpGraph]) -> Capture:
    """One account of captures that differ in nothing but their lowering profile."""
    captures = [graph.capture for graph in graphs]
    return Capture(
        method=captures[0].method,
        framework_version=graphs[0].framework_version,
        complete=all(capture.complete for capture in captures),
        notes=tuple(dict.fromkeys(note for capture in captures for note in capture.notes)),
        unseen=tuple(dict.fromkeys(part for capture in captures for part in capture.unseen)),
    )
