"""`opscan-baseline.json`: sorted, one finding a line, so that it reads and merges well."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from scanner.errors import DataError
from scanner.suppress.baseline import merged
from scanner.suppress.interface import Entry

__all__ = ["DEFAULT", "SCHEMA", "parse_baseline", "render_baseline"]

SCHEMA = "opscan.baseline/1"
DEFAULT = "opscan-baseline.json"
_REMEDY = "Remove it, and write it again with `opscan baseline write`."


class _Header(msgspec.Struct):
    schema: str


class _File(msgspec.Struct):
    findings: tuple[Entry, ...]


def render_baseline(entries: Sequence[Entry]) -> str:
    """The file: the same for the same multiset of entries. Fields that say nothing are left out."""
    lines = [json.dumps(_fields(entry), ensure_ascii=False) for entry in merged(entries)]
    body = ",\n".join(f"    {line}" for line in lines)
    listed = f"[\n{body}\n  ]" if lines else "[]"
    return f'{{\n  "schema": "{SCHEMA}",\n  "findings": {listed}\n}}\n'


def parse_baseline(text: bytes, origin: str) -> tuple[Entry, ...]:
    """The entries; raises `DataError` that names `origin` for anything but a baseline."""
    try:
        schema = msgspec.json.decode(text, type=_Header).schema
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(f"{origin} is not a baseline: {error}", remedy=_REMEDY) from None
    if schema.startswith("opscan.report/"):
        raise DataError(
            f"{origin} is a report, not a baseline",
            remedy="`opscan baseline write` makes one of it; --diff-against compares with it.",
        )
    if schema != SCHEMA:
        raise DataError(
            f"{origin} has the schema {schema!r}; this opscan reads {SCHEMA!r}",
            remedy=f"Update opscan. {_REMEDY}",
        )
    try:
        entries = msgspec.json.decode(text, type=_File).findings
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(f"{origin} is a damaged baseline: {error}", remedy=_REMEDY) from None
    for number, entry in enumerate(entries, 1):
        if entry.reason is not None and not entry.reason.strip():
            raise DataError(
                f"{origin}: the reason of finding {number} ({entry.rule}) is empty",
                remedy="Say why it was accepted, or remove the field.",
            )
    return merged(entries)


def _fields(entry: Entry) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(entry)
    return {name: value for name, value in fields.items() if value not in ("", None)}
