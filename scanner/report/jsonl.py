"""One record a line: `report`, then each `model` with its `op` and `finding` lines, last `summary`.

A reader that has seen no `summary` has not seen the whole report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from scanner.records import ModelReport, Report
from scanner.report.interface import Style
from scanner.report.words import json_escaped

__all__ = ["render"]


def render(report: Report, style: Style) -> str:  # noqa: ARG001 - one signature for all formats
    """Lines in the order of the report; every line has `type`."""
    return "".join(f"{_line(record)}\n" for record in _records(report))


def _line(record: dict[str, Any]) -> str:
    return json_escaped(msgspec.json.encode(record, order="deterministic").decode())


def _records(report: Report) -> Iterator[dict[str, Any]]:
    whole = _fields(report)
    lines = {name: whole.pop(name) for name in ("models", "source", "suppression")}
    last = {name: whole.pop(name) for name in ("summary", "exit_code")}
    yield {"type": "report", **whole}
    for number, model in enumerate(lines["models"]):
        yield from _of_model(number, model)
    for name in ("source", "suppression"):
        if lines[name] is not None:
            yield from _of_part(name, lines[name])
    yield {"type": "summary", **_fields(last.pop("summary")), **last}


def _of_model(number: int, model: ModelReport) -> Iterator[dict[str, Any]]:
    facts = _fields(model)
    ops, findings = facts.pop("ops"), facts.pop("findings")
    yield {"type": "model", "model": number, **facts}
    for row in ops:
        yield {"type": "op", "model": number, **_fields(row)}
    for finding in findings:
        yield {"type": "finding", "model": number, **_fields(finding)}


def _of_part(name: str, part: msgspec.Struct) -> Iterator[dict[str, Any]]:
    facts = _fields(part)
    findings = facts.pop("findings")
    yield {"type": name, **facts}
    for finding in findings:
        yield {"type": "finding", "model": None, **_fields(finding)}


def _fields(record: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}
