"""Judges a saved report once more: with the facts and rules of today, or for other targets.

The ops of the report stand in for the captured graph. That holds for every target whose release
dispatches as a target of the report does, so for those with the same lowering profile.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from scanner import __version__
from scanner.capture.ledger import Captured
from scanner.errors import UsageError
from scanner.judge.gate import Gate, exit_code, summarize
from scanner.judge.interface import Knowledge
from scanner.judge.measured import call_of
from scanner.judge.models import judge_model
from scanner.judge.profile import profile_for
from scanner.records import ModelReport, OpGraph, Report, Step, Target

__all__ = ["judge_again"]


def judge_again(
    report: Report, targets: Sequence[Target], gate: Gate, knowledge: Knowledge
) -> Report:
    """The report as a scan for `targets` (none: its own) would write it now.

    Raises `UsageError` for a target that dispatches other ops than every target of the report.
    """
    wanted = tuple(targets) or report.targets
    stand_ins = {target.id: _stand_in(target, report, knowledge) for target in wanted}
    models = tuple(_judged(model, wanted, stand_ins, knowledge) for model in report.models)
    return msgspec.structs.replace(
        report,
        tool={"name": "opscan", "version": __version__},
        targets=wanted,
        models=models,
        summary=summarize(models, report.source),
        exit_code=exit_code(models, gate, report.source),
    )


def _stand_in(target: Target, report: Report, knowledge: Knowledge) -> str:
    """Id of the report's target that dispatches the same ops."""
    holds = profile_for(target, knowledge).holds
    for known in report.targets:
        if known.id == target.id or profile_for(known, knowledge).holds == holds:
            return known.id
    raise UsageError(
        f"{target.id} dispatches other ops than the targets of this report",
        remedy=f"Scan the model again with --target {target.id}.",
    )


def _judged(
    model: ModelReport, targets: Sequence[Target], stand_ins: dict[str, str], knowledge: Knowledge
) -> ModelReport:
    if model.capture is None:
        return model
    graphs = {known: _graph(model, known) for known in set(stand_ins.values())}
    captured = Captured(name=model.name, entry=model.entry, graphs=graphs)
    judged = judge_model(captured, targets, stand_ins, knowledge)
    # Shown by whole steps, not judged from the database: nothing of it has changed.
    return msgspec.structs.replace(judged, accumulated=model.accumulated, batches=model.batches)


def _graph(model: ModelReport, target: str) -> OpGraph:
    """What the report says that the target dispatches; values of the step are lost."""
    assert model.capture is not None
    rows = {
        place: row
        for place, row in enumerate(model.ops)
        if any(each.target == target for each in row.verdicts)
    }
    return OpGraph(
        name=model.name,
        source=model.source,
        entry=model.entry,
        framework="torch",
        framework_version=model.capture.framework_version,
        mode="infer" if model.mode == "infer" else "train",
        holds=(),
        capture=model.capture,
        ops=tuple(map(call_of, rows.values())),
        steps=_steps(model, target, list(rows)),
    )


def _steps(model: ModelReport, target: str, rows: list[int]) -> tuple[Step, ...]:
    """The order of execution, where the report has it; `rows` are the model's that are kept."""
    ops = {row: op for op, row in enumerate(rows)}
    order = next((each.rows for each in model.order if target in each.targets), ())
    if not ops.keys() >= set(order):  # a file that somebody edited
        return ()
    return tuple(Step(op=ops[row], location=-1, reads=(), writes=()) for row in order)
