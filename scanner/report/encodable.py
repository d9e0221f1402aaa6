"""Reports that can be written as UTF-8, whatever names a file system or a model had."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from scanner.records import Report

__all__ = ["encodable"]

_SURROGATE = re.compile(r"[\ud800-\udfff]")


def encodable(report: Report) -> Report:
    """The report itself, or where a string holds lone surrogates (bytes of a file name that are
    no UTF-8), a copy with U+FFFD for each."""
    try:
        msgspec.json.encode(report)
    except UnicodeEncodeError:
        return msgspec.convert(_replaced(msgspec.to_builtins(report)), Report)
    return report


def _replaced(value: Any) -> Any:
    match value:
        case str():
            return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
        case dict():
            return {_replaced(key): _replaced(each) for key, each in value.items()}
        case list() | tuple():
            return [_replaced(each) for each in value]
        case _:
            return value
