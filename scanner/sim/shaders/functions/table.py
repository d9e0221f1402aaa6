"""One table of all functions that kernels may call, and the definition of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from . import approximate, conversions, floats, integers, matrix, memory, simd
from .interface import Body, Direction, External, Family
from .types import element, lanes

__all__ = ["FAMILIES", "Definition", "classify", "define"]

FAMILIES: tuple[Family, ...] = (
    *integers.FAMILIES,
    *conversions.FAMILIES,
    *floats.FAMILIES,
    *approximate.FAMILIES,
    *memory.FAMILIES,
    *simd.FAMILIES,
    *matrix.FAMILIES,
)


@dataclass(frozen=True)
class Definition:
    """LLVM text that defines an external, and what it needs besides."""

    text: str
    needs: tuple[str, ...]


@cache
def _compiled() -> tuple[tuple[re.Pattern[str], Family], ...]:
    return tuple((re.compile(f"(?:{f.pattern})$"), f) for f in FAMILIES)


def _scalar_name(name: str) -> str:
    """`air.exp.v4f32` → `air.exp.f32`."""
    return re.sub(r"\.v\d(?=b?[fi]\d)", ".", name)


def _direct(name: str) -> Family | None:
    return next((family for pattern, family in _compiled() if pattern.match(name)), None)


@cache
def classify(name: str) -> Family | None:
    """The family of an external, or None for one never seen.

    A function of vectors that has no entry of its own belongs to that of its elements.
    """
    return _direct(name) or _direct(_scalar_name(name))


def _signature(external: External, family: Family) -> str:
    parameters = external.parameters()
    if family.kind == "cooperative":
        parameters = ", ".join(filter(None, (parameters, *simd.EXTRA)))
    return f"define internal {external.result} @{external.name}({parameters}) alwaysinline"


def _elementwise(external: External, family: Family, direction: Direction) -> Definition:
    scalar = External(
        _scalar_name(external.name),
        element(external.result),
        tuple(element(t) for t in external.arguments),
    )
    inner = define(scalar, family, direction)
    inner_text = inner.text.replace(f"@{scalar.name}(", f"@opscan.each.{scalar.name}(", 1)
    text, last = "", "poison"
    for i in range(lanes(external.result)):
        given = []
        for j, kind in enumerate(external.arguments):
            name = f"%{chr(97 + j)}{i}" if lanes(kind) else f"%{chr(97 + j)}"
            if lanes(kind):
                text += f"  {name} = extractelement {kind} %{chr(97 + j)}, i32 {i}\n"
            given.append(f"{element(kind)} {name}")
        text += (
            f"  %e{i} = call {scalar.result} @opscan.each.{scalar.name}({', '.join(given)})\n"
            f"  %v{i} = insertelement {external.result} {last}, {scalar.result} %e{i}, i32 {i}\n"
        )
        last = f"%v{i}"
    text += f"  ret {external.result} {last}\n"
    return Definition(f"{_signature(external, family)} {{\n{text}}}", (*inner.needs, inner_text))


def define(external: External, family: Family, direction: Direction = "nearest") -> Definition:
    """The definition that stands in for an external's declaration.

    Raises ValueError for a family without a lowering, or a type that it does not have.
    """
    if family.lower is None:
        raise ValueError(f"{external.name} has no lowering")
    if _direct(external.name) is None:
        return _elementwise(external, family, direction)
    body: Body = family.lower(external, direction)
    return Definition(f"{_signature(external, family)} {{\n{body.text}}}", body.needs)
