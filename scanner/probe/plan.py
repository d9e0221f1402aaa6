"""What is to be run: each configuration once, under a key that outlives the scan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from scanner.records import OpCall, TensorSpec

__all__ = ["Case", "Plan", "conditions_key", "config_key", "make_plan"]

_KEY_LENGTH = 32


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration and where its JSON lies in the file of cases."""

    key: str
    op: str
    start: int
    size: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The distinct configurations of a scan, in order of first appearance."""

    cases: tuple[Case, ...]
    text: bytes
    """The file of cases: one `OpCall` a line, without locations."""

    def write(self, path: Path) -> None:
        """Write the file that workers read configurations from."""
        path.write_bytes(self.text)


def config_key(call: OpCall) -> str:
    """The configuration's identity: op, every argument, and values that were captured.

    Not phase, place or number of calls. Backward ops are run as they are, so an op computes the
    same in whichever phase it stands.
    """
    given = [_given(spec) for spec in call.inputs]
    # Left out when there are none, so that keys of early versions stay as they are.
    return _digest([call.op, given, call.attributes, *([call.values] if call.values else [])])


def conditions_key(conditions: Mapping[str, Any]) -> str:
    """Identity of everything besides the configuration that a result depends on."""
    return _digest(conditions)


def make_plan(calls: Iterable[OpCall]) -> Plan:
    """Leave out what has been seen before."""
    cases: dict[str, Case] = {}
    lines: list[bytes] = []
    start = 0
    for call in calls:
        key = config_key(call)
        if key in cases:
            continue
        line = msgspec.json.encode(msgspec.structs.replace(call, locations=(), calls=1)) + b"\n"
        cases[key] = Case(key=key, op=call.op, start=start, size=len(line))
        lines.append(line)
        start += len(line)
    return Plan(cases=tuple(cases.values()), text=b"".join(lines))


def _given(spec: TensorSpec) -> dict[str, Any]:
    """What differs from the defaults, so that a field added later leaves old keys as they are."""
    return {
        field.encode_name: value
        for field in msgspec.structs.fields(spec)
        if (value := getattr(spec, field.name)) != field.default
    }


def _digest(value: Any) -> str:
    text = msgspec.json.encode(value, order="deterministic")
    return hashlib.sha256(text).hexdigest()[:_KEY_LENGTH]
