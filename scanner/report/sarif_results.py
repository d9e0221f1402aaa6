"""Findings as SARIF results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from scanner.records import Finding, Location
from scanner.report.found import Found

__all__ = ["MAX_RESULTS", "escaped", "results"]

MAX_RESULTS = 5000
"""GitHub keeps no more of one run."""
_PLACEHOLDER = re.compile(r"\{(\d+)\}")


def results(
    found: Sequence[Found], index: dict[str, int], *, several: bool
) -> list[dict[str, Any]]:
    """A result for each, in this order; `index` is the place of each rule in the driver."""
    seen: Counter[str] = Counter()
    made = []
    for each in found:
        seen[each.finding.fingerprint] += 1
        occurrence = seen[each.finding.fingerprint]
        made.append(_result(each, index, occurrence, several=several))
    return made


def escaped(text: str) -> str:
    """A message without placeholders and links of SARIF (3.11.5, 3.11.6)."""
    text = _PLACEHOLDER.sub(r"{{\1}}", text)
    return text.replace("[", "\\[") if "](" in text else text


def _result(
    found: Found, index: dict[str, int], occurrence: int, *, several: bool
) -> dict[str, Any]:
    finding = found.finding
    target = f" [{finding.target}]" if several and finding.target else ""
    remedy = f"\n{finding.remedy}" if finding.remedy else ""
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": finding.severity,
        "message": {"text": escaped(f"{finding.message}{target}{remedy}")},
        "properties": _properties(finding),
    }
    if location := _location(found):
        result["locations"] = [location]
    if finding.fingerprint:
        result["partialFingerprints"] = {
            "opscanFinding/v1": finding.fingerprint,
            "primaryLocationLineHash": f"{finding.fingerprint}:{occurrence}",
        }
    if finding.suppressed:
        kind = "inSource" if finding.suppressed_by == "line" else "external"
        result["suppressions"] = [{"kind": kind, "justification": finding.suppressed}]
    if finding.baseline_state:
        result["baselineState"] = finding.baseline_state
    return result


def _properties(finding: Finding) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "target": finding.target,
        "op": finding.op,
        "dtypes": list(finding.dtypes),
        "calls": finding.calls,
        "fixedIn": finding.fixed_in,
        "links": list(finding.links),
    }
    if finding.fix is not None:
        facts["fix"] = {"description": finding.fix.description, "safe": finding.fix.safe}
    return {key: value for key, value in facts.items() if value}


def _location(found: Found) -> dict[str, Any]:
    where: dict[str, Any] = {}
    if found.file:
        where["physicalLocation"] = _physical(found.file, found.finding.location)
    if logical := _logical(found):
        where["logicalLocations"] = [logical]
    return where


def _physical(file: str, location: Location | None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(file)}
    if location is not None and location.line > 0:
        physical["region"] = _region(location)
    return physical


def _artifact(file: str) -> dict[str, Any]:
    if file.startswith("/"):
        return {"uri": f"file://{quote(file)}"}
    return {"uri": quote(file), "uriBaseId": "%SRCROOT%"}


def _region(location: Location) -> dict[str, Any]:
    facts = {
        "startLine": location.line,
        "startColumn": location.column,
        "endLine": location.end_line,
        "endColumn": location.end_column,
    }
    region: dict[str, Any] = {key: value for key, value in facts.items() if value}
    if location.code:
        region["snippet"] = {"text": location.code}
    return region


def _logical(found: Found) -> dict[str, Any]:
    """Model, module and op: what is known even where no line is."""
    location = found.finding.location
    names = (
        found.model.name if found.model else "",
        location.module if location else "",
        found.finding.op,
    )
    known = [name for name in names if name]
    return {"name": known[-1], "fullyQualifiedName": "/".join(known)} if known else {}
