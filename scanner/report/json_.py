"""The canonical record: `opscan.report/1`, two-space indented, byte-identical for equal reports."""

from __future__ import annotations

import re

import msgspec

from scanner.errors import DataError
from scanner.records import Report
from scanner.report.free_form import faults
from scanner.report.interface import Style
from scanner.report.words import json_escaped

__all__ = ["SCHEMA", "parse", "render"]

SCHEMA = "opscan.report/1"


_NUMBERS = re.compile(r"\[\n\s+(-?\d+(?:,\n\s+-?\d+)*)\n\s+\]")
"""An array of integers over several lines; no string matches, since JSON escapes line ends."""


class _Header(msgspec.Struct):
    schema: str


def render(report: Report, style: Style) -> str:  # noqa: ARG001 - one signature for all formats
    """The report as JSON; fields in the order of the records, free-form keys sorted."""
    encoded = msgspec.json.encode(report, order="deterministic")
    indented = msgspec.json.format(encoded, indent=2).decode()
    return json_escaped(_NUMBERS.sub(_on_one_line, indented)) + "\n"


def _on_one_line(numbers: re.Match[str]) -> str:
    """Shapes and strides are read as one, and make up most of a report."""
    return f"[{', '.join(number.strip() for number in numbers[1].split(','))}]"


def parse(text: bytes, origin: str) -> Report:
    """The report in `text`; raises `DataError` that names `origin` when it holds none."""
    try:
        schema = msgspec.json.decode(text, type=_Header).schema
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(
            f"{origin} is not an opscan report: {error}",
            remedy="Write one with `opscan MODEL -f json -o FILE`.",
        ) from None
    if schema.startswith("opscan.baseline/"):
        raise DataError(
            f"{origin} is a baseline, not a report",
            remedy="Give it with --baseline, and name a report: `opscan MODEL -f json -o FILE`.",
        )
    if schema != SCHEMA:
        raise DataError(
            f"{origin} has the schema {schema!r}; this opscan reads {SCHEMA!r}",
            remedy="Update opscan, or write the report again with this version.",
        )
    try:
        report = msgspec.json.decode(text, type=Report)
    except msgspec.MsgspecError as error:
        raise _damaged(origin, str(error)) from None
    for fault in faults(report):
        raise _damaged(origin, fault)
    return report


def _damaged(origin: str, fault: str) -> DataError:
    return DataError(f"{origin} is a damaged report: {fault}", remedy="Write the report again.")
