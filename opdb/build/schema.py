"""Reads operator schemas: which variant of its operator, does it alias or write to arguments."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

__all__ = ["Schema", "Variant", "parse"]

Variant = Literal["functional", "inplace", "out", "mutable"]

_ALIAS = re.compile(r"\((\w+)(!?)( -> [^)]*)?\)")


class Schema(NamedTuple):
    """What a schema says about memory."""

    name: str
    variant: Variant
    view: bool
    """A result aliases an argument that is not written to."""
    signature: str
    """Equal for the functional, in-place, mutable and out variants of one operator."""


def parse(text: str) -> Schema:
    """`add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)` taken apart."""
    head, _, results = text.rpartition(" -> ")
    name, _, arguments = head.partition("(")
    listed = _split(arguments.removesuffix(")"))
    outs = _outs(listed)
    view = any(not match[2] for match in _ALIAS.finditer(results))
    return Schema(name, _variant(name, listed, outs), view, _signature(name, listed, outs))


def _split(arguments: str) -> list[str]:
    """Arguments at commas outside brackets; defaults may hold commas."""
    return re.findall(r"(?:[^,(\[]|\([^)]*\)|\[[^\]]*\])+", arguments.replace(", ", ","))


def _outs(arguments: list[str]) -> list[str]:
    """Keyword-only arguments that are written to."""
    if "*" not in arguments:
        return []
    return [argument for argument in arguments[arguments.index("*") :] if "!" in argument]


def _variant(name: str, arguments: list[str], outs: list[str]) -> Variant:
    base = name.partition(".")[0]
    if outs:
        return "out"
    if re.fullmatch(r"__i\w+__|\w*[^_]_", base):
        return "inplace"
    return "mutable" if any("!" in argument for argument in arguments) else "functional"


def _signature(name: str, arguments: list[str], outs: list[str]) -> str:
    base = name.partition(".")[0]
    base = re.sub(r"^__i(\w+__)$", r"__\1", base)
    base = base if base.endswith("__") else base.removesuffix("_")
    kept = [_ALIAS.sub("", each).partition("=")[0] for each in arguments if each not in outs]
    return f"{base}({','.join(each for each in kept if each != '*')})"
