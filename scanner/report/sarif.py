"""SARIF 2.1.0, as code scanning services take it.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0; limits of
docs.github.com, "SARIF support for code scanning".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from scanner.records import Report
from scanner.report.found import UNJUDGED, Found, findings_of, worst_first
from scanner.report.interface import Style
from scanner.report.sarif_results import MAX_RESULTS, escaped, results
from scanner.report.sarif_rules import descriptors
from scanner.report.words import json_escaped

__all__ = ["render"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_FAILED = frozenset({"OPS903", "OPS904"})


def render(report: Report, style: Style) -> str:  # noqa: ARG001 - one signature for all formats
    """One run; results worst first, suppressed ones too."""
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(report)]}
    return json_escaped(json.dumps(log, indent=2, ensure_ascii=False)) + "\n"


def _run(report: Report) -> dict[str, Any]:
    every = list(findings_of(report))
    problems = [each for each in every if each.finding.rule in UNJUDGED]
    others = [each for each in every if each.finding.rule not in UNJUDGED]
    ranked = worst_first(sorted(others, key=lambda each: bool(each.finding.suppressed)))
    rules = descriptors({each.finding.rule for each in every})
    index = {rule["id"]: place for place, rule in enumerate(rules)}
    return {
        "tool": {"driver": _driver(report, rules)},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            "%SRCROOT%": {"description": {"text": "The directory that opscan was run in."}}
        },
        "invocations": [_invocation(report, problems, index, len(ranked))],
        "results": results(ranked[:MAX_RESULTS], index, several=len(report.targets) > 1),
        "properties": {"targets": [target.id for target in report.targets]},
    }


def _driver(report: Report, rules: list[dict[str, Any]]) -> dict[str, Any]:
    driver: dict[str, Any] = {"name": "opscan", "rules": rules}
    if version := report.tool.get("version"):
        driver["semanticVersion"] = version
    return driver


def _invocation(
    report: Report, problems: Sequence[Found], index: dict[str, int], number: int
) -> dict[str, Any]:
    told = [_problem(each, index) for each in problems]
    told += [_told(text) for text in _unknown(report)]
    if number > MAX_RESULTS:
        told.append(_told(f"{number - MAX_RESULTS} of {number} results are left out, the mildest."))
    return {
        "executionSuccessful": not any(each.finding.rule in _FAILED for each in problems),
        "exitCode": report.exit_code,
        "toolExecutionNotifications": told,
        "properties": {"complete": report.summary.complete},
    }


def _problem(found: Found, index: dict[str, int]) -> dict[str, Any]:
    rule = found.finding.rule
    return {
        "level": "error" if rule in _FAILED else "warning",
        "message": {"text": escaped(found.finding.message)},
        "associatedRule": {"id": rule, "index": index[rule]},
    }


def _unknown(report: Report) -> list[str]:
    """For each model and target, the ops that nothing is known about; whole steps cut short."""
    said = []
    for model in report.models:
        ops: dict[str, dict[str, None]] = {}
        for row in model.ops:
            for verdict in row.verdicts:
                if verdict.status == "unknown":
                    ops.setdefault(verdict.target, {})[row.op] = None
            asked = (row.measurement, *row.simulations.values())
            for each in asked:
                if each is not None and each.status == "unknown":
                    ops.setdefault(each.device, {})[row.op] = None
        for where, names in ops.items():
            said.append(f"{model.name}: not judged on {where}: {', '.join(names)}")
        if model.accumulated is not None and model.accumulated.incomplete:
            said.append(f"{model.name}: whole steps: {model.accumulated.incomplete}")
    return said


def _told(text: str) -> dict[str, Any]:
    return {"level": "warning", "message": {"text": escaped(text)}}
