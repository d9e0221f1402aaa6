"""Makes one report of several: shards of a scan, or scans on several machines."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from scanner.judge.gate import Gate, exit_code, summarize
from scanner.judge.merge_models import join_models, model_key, targets_of
from scanner.records import (
    Finding,
    ModelReport,
    Report,
    SourceScan,
    Suppression,
    Target,
)

__all__ = ["Named", "merge_reports"]

T = TypeVar("T")


class Named(NamedTuple):
    """A report and the file that it was read from."""

    name: str
    report: Report


def merge_reports(named: Sequence[Named], gate: Gate) -> tuple[Report, tuple[str, ...]]:
    """The union, weighed by `gate`, and a sentence for each contradiction.

    A model that several reports have alike, or for other targets, stands once. Where they differ
    about a model for the same target, all of them stand. `environment` has those of all reports
    under `merged`.
    """
    reports = [each.report for each in named]
    models = join_models([model for report in reports for model in report.models])
    source = _sources([each.source for each in reports if each.source is not None])
    accepted = _suppressions([each.suppression for each in reports if each.suppression])
    merged = Report(
        tool=reports[0].tool,
        environment={"merged": [{"report": one.name, **one.report.environment} for one in named]},
        targets=_once((target for each in reports for target in each.targets), _target_id),
        models=models,
        source=source,
        suppression=accepted,
        summary=summarize(models, source, accepted),
        exit_code=exit_code(models, gate, source, accepted),
    )
    return merged, (*_tools(named), *_contradictions(models))


def _target_id(target: Target) -> Hashable:
    return target.id


def _once(values: Iterable[T], key: Callable[[T], Hashable | T]) -> tuple[T, ...]:
    """The first of each key. Records that hold dictionaries are compared, not hashed."""
    kept: list[T] = []
    keys: list[Hashable | T] = []
    for value in values:
        if (known := key(value)) not in keys:
            keys.append(known)
            kept.append(value)
    return tuple(kept)


def _sources(parts: Sequence[SourceScan]) -> SourceScan | None:
    """Files of equal parts count once, of others together, even where their roots overlap."""
    distinct = _once(parts, lambda one: one)
    if not distinct:
        return None
    return SourceScan(
        files=sum(part.files for part in distinct),
        skipped=sum(part.skipped for part in distinct),
        findings=_distinct_findings(part.findings for part in distinct),
        roots=tuple(dict.fromkeys(root for part in distinct for root in part.roots)),
    )


def _suppressions(parts: Sequence[Suppression]) -> Suppression | None:
    if not parts:
        return None
    return Suppression(
        lines=_once((line for part in parts for line in part.lines), lambda one: one),
        findings=_distinct_findings(part.findings for part in parts),
    )


def _distinct_findings(parts: Iterable[Sequence[Finding]]) -> tuple[Finding, ...]:
    """Findings of all parts; what several parts found at the same place stands once.

    Within a part nothing is dropped, since baselines count equal fingerprints.
    """
    kept: list[Finding] = []
    for part in parts:
        known = {_identity(each) for each in kept}
        kept += [each for each in part if _identity(each) not in known]
    return tuple(kept)


def _identity(finding: Finding) -> Hashable:
    place = finding.location
    where = (place.file, place.line, place.column) if place else None
    return finding.fingerprint, finding.target, finding.rule, where, finding.message


def _tools(named: Sequence[Named]) -> list[str]:
    first = named[0]
    return [
        f"{one.name} was written by opscan {one.report.tool.get('version', '?')}, "
        f"{first.name} by {first.report.tool.get('version', '?')}"
        for one in named[1:]
        if one.report.tool != first.report.tool
    ]


def _contradictions(models: Sequence[ModelReport]) -> list[str]:
    """Models of one name that two reports judge otherwise for the same target."""
    said: dict[str, None] = {}
    for place, model in enumerate(models):
        for other in models[:place]:
            same = model_key(model) == model_key(other)
            shared = targets_of(model) & targets_of(other)
            if same and (shared or not targets_of(model) or not targets_of(other)):
                where = f" for {', '.join(sorted(shared))}" if shared else ""
                said[f"reports differ about {model.name} in {model.source}{where}: both kept"] = (
                    None
                )
    return list(said)
