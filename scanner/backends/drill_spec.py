"""The language of `drill:` devices: which fault strikes which op, and when.

    SPEC   = FAULT=OP[CONDITIONS][@N] , …
    OP     = a qualified overload, or a pattern: aten::mm   aten::_foreach_*   *
    CONDITIONS = "[" KEY=VALUE , … "]"   all must hold for one and the same tensor argument:
             dtype=float16   shape=2x3 (2x0x3; empty for scalars)   rank=4   numel>=65536
             numel<64   contiguous=no
    @N     = only the Nth call that matches, counted in each worker process

A spec is plain data; nothing here imports torch.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import NoReturn

import msgspec

from scanner.errors import UsageError

__all__ = ["FAULTS", "Condition", "Fault", "Operand", "parse_drill"]

FAULTS = MappingProxyType(
    {
        "abort": "the process aborts, as Metal's assertions do",
        "segfault": "the process reads a null pointer",
        "exit": "the process exits with code 7",
        "late": "the process aborts 30 ms after the op has returned, as asynchronous errors do",
        "hang": "the op never returns",
        "oom": "the op raises MPS' out-of-memory error",
        "raise": "the op raises NotImplementedError, as an op without an MPS kernel does",
        "partial": "the process dies while it writes a result",
        "garbage": "the op prints garbage on stdout and on the worker's pipe; its result is right",
        "nan": "one element of the result becomes NaN",
        "unnan": "NaN in the result becomes 0",
        "bias": "floating-point results are 1 % too large",
        "tile": "one tile of the result is stale: zeros where values belong",
        "dtype": "the result has another dtype",
        "stride": "the result has another memory layout",
        "noinplace": "an in-place op returns without having written",
        "grad": "gradients through the op are 1.5 times what they should be",
        "noise": "floating-point results are off by up to 3 units in the last place (must pass)",
        "slow": "the op takes three times as long",
        "fallback": "the op warns that it ran on the CPU, as MPS' fallback does",
        "missing": "the op raises NotImplementedError, or falls back to the CPU where "
        "PYTORCH_ENABLE_MPS_FALLBACK is set",
    }
)
"""Every fault that can be injected → what happens."""

_ENTRY = re.compile(r"([a-z]+)=([^=\[\]@]+)(?:\[([^\]]*)\])?(?:@(\d+))?")
_CONDITION = re.compile(r"(dtype|shape|rank|numel|contiguous)(=|>=|<)(.*)")
_DTYPE = re.compile(r"[a-z]+\d*\w*")
_EXAMPLE = "Write, for example, drill:abort=aten::mm,nan=aten::_softmax[dtype=float16]@2."


class Operand(msgspec.Struct, frozen=True, kw_only=True):
    """What conditions can ask of a tensor argument."""

    dtype: str
    shape: tuple[int, ...]
    contiguous: bool


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement; see the module's docstring."""

    key: str
    relation: str
    value: str | int | bool | tuple[int, ...]

    def holds(self, operand: Operand) -> bool:
        """Whether the operand is as required."""
        if self.key in {"rank", "numel"} and isinstance(self.value, int):
            return _compare(self._number(operand), self.relation, self.value)
        return bool(getattr(operand, self.key) == self.value)

    def _number(self, operand: Operand) -> int:
        if self.key == "rank":
            return len(operand.shape)
        count = 1
        for size in operand.shape:
            count *= size
        return count


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a spec."""

    name: str
    """A key of `FAULTS`."""
    op: str
    """Pattern of qualified overloads."""
    conditions: tuple[Condition, ...] = ()
    nth: int | None = None
    """1-based; None for every call."""

    def names(self, op: str) -> bool:
        """Whether it may strike this op."""
        return fnmatchcase(op, self.op)

    def concerns(self, op: str, operands: list[Operand]) -> bool:
        """Whether a call matches, its number left aside."""
        if not self.names(op):
            return False
        return not self.conditions or any(
            all(condition.holds(operand) for condition in self.conditions) for operand in operands
        )


def parse_drill(spec: str) -> tuple[Fault, ...]:
    """The faults of a spec, `drill:` removed. Raises `UsageError` that quotes the faulty part."""
    # A comma inside brackets separates conditions, not faults.
    entries = [part.strip() for part in re.split(r",(?![^\[]*\])", spec)]
    if entries == [""]:
        raise UsageError("the drill has no faults", remedy=_EXAMPLE)
    return tuple(_fault(entry) for entry in entries)


def _fault(entry: str) -> Fault:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise UsageError(f"{entry!r} is not FAULT=OP[CONDITIONS]@N", remedy=_EXAMPLE)
    name, op, conditions, nth = match.groups()
    if name not in FAULTS:
        near = get_close_matches(name, FAULTS, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"a drill has no fault {name!r}", remedy=f"{hint}Faults are {', '.join(FAULTS)}."
        )
    if "::" not in op and "*" not in op:
        raise UsageError(
            f"{op!r} in {entry!r} is not a qualified op",
            remedy=f"Write aten::{op}, with its overload if it has one, or a pattern with *.",
        )
    if nth == "0":
        raise UsageError(f"calls are counted from 1, not 0 as in {entry!r}", remedy=_EXAMPLE)
    return Fault(
        name=name,
        op=op,
        conditions=tuple(
            _condition(text.strip()) for text in (conditions or "").split(",") if text
        ),
        nth=int(nth) if nth else None,
    )


def _condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        _refuse(text, "Keys are dtype=, shape=, rank=, numel>=, numel<, contiguous=.")
    key, relation, value = match.groups()
    if relation != "=" and key not in {"rank", "numel"}:
        _refuse(text, f"{key} can only be compared with =.")
    return Condition(key=key, relation=relation, value=_value(key, value, text))


def _value(key: str, value: str, text: str) -> str | int | bool | tuple[int, ...]:
    if key == "dtype":
        return value if _DTYPE.fullmatch(value) else _refuse(text, "Write dtype=float16.")
    if key == "contiguous":
        if value not in {"yes", "no"}:
            _refuse(text, "Write contiguous=yes or contiguous=no.")
        return value == "yes"
    try:
        if key == "shape":
            return tuple(int(size) for size in value.split("x")) if value else ()
        return int(value)
    except ValueError:
        _refuse(text, "Write shape=2x3." if key == "shape" else f"Write {key}=4.")


def _compare(number: int, relation: str, bound: int) -> bool:
    return {"=": number == bound, ">=": number >= bound, "<": number < bound}[relation]


def _refuse(text: str, remedy: str) -> NoReturn:
    raise UsageError(f"a drill cannot use the condition {text!r}", remedy=remedy)
