"""What happens to each model on each target, in a sentence, numbers and a strip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from scanner.records import ModelReport, OpReport, Report, Status, Verdict
from scanner.report.evidence import unanswered
from scanner.report.html.lanes import (
    LANES,
    Lane,
    Run,
    Walk,
    lane_of,
    runs,
    switches,
    walk,
    without_host,
)
from scanner.report.html.strip import strip
from scanner.report.html.views import View, seen, views_of
from scanner.report.words import count, join
from scanner.statuses import SEVERITY_ORDER

__all__ = ["Glance", "Outcome", "Stretch", "glances"]

_SOURCES = {
    "measured": "a measurement",
    "simulated": "the simulator",
    "database": "the database",
    "upstream": "PyTorch's own tests",
    "issue": "known issues",
    "inferred": "inference",
}
_NAMED = 4
_STRETCHES = 60
_SENTENCES: tuple[tuple[Status, str, str], ...] = (
    ("crash", "bad", "Crashes"),
    ("unsupported", "bad", "Does not run"),
    ("wrong", "bad", "Runs, with wrong results"),
    ("nan", "bad", "Runs, with NaN or infinity"),
    ("fallback", "warn", "{runs}, in part on the CPU"),
    ("slow", "warn", "{runs}, in part slowly"),
)
"""Worst first: status → tone, what it means for the step."""


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Neighbouring calls on one device, in words."""

    first: int
    last: int
    """From 1."""
    where: str
    phases: tuple[str, ...]
    ops: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A model on a target, or on a device that is none."""

    view: View
    tone: str
    """`good`, `warn`, `bad` or `unknown`."""
    title: str
    details: tuple[str, ...]
    by_config: dict[Status, int]
    by_call: dict[Status, int]
    known: str
    """How many configurations are known by what."""
    walk: Walk
    stretches: tuple[Stretch, ...]
    """The first of them."""
    stretches_left: int
    told: str
    """How many calls there are, how they are ordered, and what is known of switches."""
    strip: Markup


@dataclass(frozen=True, kw_only=True)
class Glance:
    """A model."""

    model: ModelReport
    anchor: str
    outcomes: tuple[Outcome, ...]
    gaps: tuple[str, ...]
    """What is not known, and why."""


def glances(report: Report) -> list[Glance]:
    """All models in their order."""
    views = views_of(report)
    return [
        Glance(
            model=model,
            anchor=f"model-{number}",
            outcomes=tuple(_outcomes(model, views)),
            gaps=tuple(_gaps(model)),
        )
        for number, model in enumerate(report.models, 1)
    ]


def _outcomes(model: ModelReport, views: Sequence[View]) -> Iterator[Outcome]:
    for view in views:
        verdicts = {
            row: verdict
            for row, each in enumerate(model.ops)
            if (verdict := seen(each, view)) is not None
        }
        if verdicts:
            yield _outcome(model, view, verdicts)


def _outcome(model: ModelReport, view: View, verdicts: dict[int, Verdict]) -> Outcome:
    step = walk(model, view)
    lanes = {row: lane_of(verdict, view) for row, verdict in verdicts.items()}
    called = [lanes[row] for row in step.calls]
    by_config = Counter(verdict.status for verdict in verdicts.values())
    by_call: Counter[Status] = Counter()
    for row, verdict in verdicts.items():
        by_call[verdict.status] += model.ops[row].calls
    tone, title = _sentence(verdicts.values(), model, view)
    found = list(runs(step.calls, without_host(called)))
    return Outcome(
        view=view,
        tone=tone,
        title=title,
        details=tuple(_details(model, verdicts)),
        by_config=_best_first(by_config),
        by_call=_best_first(by_call),
        known=_known(verdicts.values()),
        walk=step,
        stretches=tuple(_stretch(run, model.ops) for run in found[:_STRETCHES]),
        stretches_left=max(len(found) - _STRETCHES, 0),
        told=_told(step, called),
        strip=strip([verdicts[row].status for row in step.calls], called, _told(step, called)),
    )


def _stretch(run: Run, ops: Sequence[OpReport]) -> Stretch:
    rows = [ops[row] for row in dict.fromkeys(run.calls)]
    return Stretch(
        first=run.first + 1,
        last=run.first + len(run.calls),
        where=LANES[run.lane],
        phases=tuple(dict.fromkeys(row.phase for row in rows)),
        ops=tuple(dict.fromkeys(row.op for row in rows)),
    )


def _sentence(verdicts: Collection[Verdict], model: ModelReport, view: View) -> tuple[str, str]:
    """Tone and title: the worst, whether it was seen to happen, and whether there may be more."""
    statuses = {verdict.status for verdict in verdicts}
    is_seen = model.capture is not None and model.capture.complete and "unknown" not in statuses
    runs_there = "Runs" if _is_measured(verdicts) else "Should run"
    for status, tone, title in _SENTENCES:
        if status in statuses:
            told = title.format(runs=runs_there)
            return tone, told if is_seen or tone == "bad" else f"{told}; not fully known"
    if "unknown" in statuses:
        return "unknown", "Not fully known"
    if not is_seen:
        return "unknown", f"{runs_there}, as far as it was seen"
    if view.is_device and len(verdicts) < len(model.ops):
        return "unknown", "Runs, as far as it was run"
    return "good", "Runs, equal to the reference" if view.is_device else f"{runs_there} on the GPU"


def _is_measured(verdicts: Iterable[Verdict]) -> bool:
    """Of everything that has to run there."""
    return all(each.evidence == "measured" for each in verdicts if each.status != "skipped")


def _details(model: ModelReport, verdicts: dict[int, Verdict]) -> Iterator[str]:
    """`2 ops unsupported: aten::a, aten::b` for each status that is not fine."""
    ops: dict[Status, dict[str, None]] = {}
    for row, verdict in verdicts.items():
        ops.setdefault(verdict.status, {})[model.ops[row].op] = None
    for status in SEVERITY_ORDER[: SEVERITY_ORDER.index("skipped")]:
        if names := list(ops.get(status, ())):
            hidden = len(names) - _NAMED
            more = [f"{hidden} more"] if hidden > 0 else []
            yield f"{count(len(names), 'op')} {status}: {join([*names[:_NAMED], *more])}"


def _told(step: Walk, lanes: Sequence[Lane]) -> str:
    calls = count(len(step.calls), "call")
    if not step.is_ordered:
        return f"{calls}, not in order of execution: this report does not have it."
    moves = switches(lanes)
    fallbacks = count(lanes.count("cpu"), "fallback")
    between = f"{moves:,} {'switch' if moves == 1 else 'switches'} between GPU and CPU"
    return f"{calls} in order of execution, {fallbacks}, {between}."


def _known(verdicts: Iterable[Verdict]) -> str:
    """What the code keeps on the CPU needs no evidence."""
    counts = Counter(each.evidence or each.status for each in verdicts)
    kept, unknown = counts.pop("skipped", 0), counts.pop("unknown", 0)
    parts = [f"{number:,} from {_SOURCES.get(name, name)}" for name, number in counts.items()]
    parts += [f"{kept:,} kept on the CPU by the code"] if kept else []
    return ", ".join([*parts, f"{unknown:,} not known"] if unknown else parts)


def _best_first(counts: Counter[Status]) -> dict[Status, int]:
    return {status: counts[status] for status in reversed(SEVERITY_ORDER) if counts[status]}


def _gaps(model: ModelReport) -> Iterator[str]:
    if model.capture is None:
        yield from (finding.message for finding in model.findings)
        return
    yield from (f"{part.what}: {part.reason}" for part in model.capture.unseen)
    if not model.capture.complete and not model.capture.unseen:
        yield "part of the step was not seen"
    unknown = dict.fromkeys(
        f"{row.op}: {verdict.reason}"
        for row in model.ops
        for verdict in row.verdicts
        if verdict.status == "unknown"
    )
    yield from unknown
    yield from unanswered(model)
