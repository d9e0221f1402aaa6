"""Reports of one model with findings made by hand."""

from __future__ import annotations

from datetime import date
from typing import Any

from scanner.judge.gate import Gate, exit_code, summarize
from scanner.judge.rows import coverage
from scanner.records import (
    Capture,
    Finding,
    LineIgnore,
    Location,
    Measurement,
    ModelReport,
    OpReport,
    Report,
    SourceScan,
    Target,
    Verdict,
)
from scanner.suppress.apply import suppress
from scanner.suppress.interface import Ignore, Policy
from tests.samples import at

RULES = ("OPS101", "OPS102", "OPS106", "OPS201", "OPS601", "OPS801", "OPS901")
TODAY = date(2027, 3, 1)
TARGET = Target(framework="torch", version="2.9.1")


def finding(rule: str = "OPS101", line: int = 5, **other: Any) -> Finding:
    given: dict[str, Any] = {
        "rule": rule,
        "severity": "error",
        "target": TARGET.id,
        "op": "aten::mm",
        "message": f"{rule} at {line}",
        "remedy": "Mend it.",
        "location": at(line),
        "fingerprint": "ab" * 32,
        "dtypes": ("float32",),
    }
    return Finding(**(given | other))


def row(line: int, op: str = "aten::mm", measurement: Measurement | None = None) -> OpReport:
    verdict = Verdict(target=TARGET.id, status="native", evidence="database", reason="")
    return OpReport(
        op=op,
        phase="forward",
        calls=1,
        config={},
        verdicts=(verdict,),
        locations=(at(line),),
        measurement=measurement,
    )


def model(*findings: Finding, rows: tuple[OpReport, ...] = (), **other: Any) -> ModelReport:
    places = {each.location.line for each in findings if each.location}
    ops = (*rows, *(row(line) for line in sorted(places)))
    given: dict[str, Any] = {
        "name": "Net",
        "source": "model.py",
        "entry": "Net",
        "mode": "train",
        "capture": Capture(method="meta", complete=True),
        "ops": ops,
        "findings": findings,
        "coverage": coverage(ops),
    }
    return ModelReport(**(given | other))


def report(*models: ModelReport, source: SourceScan | None = None) -> Report:
    return Report(
        targets=(TARGET,),
        models=models,
        source=source,
        summary=summarize(models, source),
        exit_code=exit_code(models, Gate(), source),
    )


def comment(line: int, *rules: str, reason: str = "known", file: str = "model.py") -> LineIgnore:
    return LineIgnore(file=file, line=line, covers=line, rules=rules, reason=reason, code="# …")


def ignore(**fields: Any) -> Ignore:
    return Ignore(**({"reason": "accepted", "place": Location(file="p.toml", line=3)} | fields))


def under(found: Report, *accepted: Ignore | LineIgnore, **other: Any) -> Report:
    lines = tuple(each for each in accepted if isinstance(each, LineIgnore))
    ignores = tuple(each for each in accepted if isinstance(each, Ignore))
    return suppress(found, Policy(today=TODAY, lines=lines, ignores=ignores, **other), RULES)


def hidden(found: Report) -> list[tuple[str, str | None]]:
    """Rule and reason of each finding of the models."""
    return [(each.rule, each.suppressed) for model in found.models for each in model.findings]


def stale(found: Report) -> list[str]:
    return [each.rule for each in found.suppression.findings] if found.suppression else []
