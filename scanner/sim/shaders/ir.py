"""Reads LLVM assembly a line at a time, as far as the lowering needs it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .functions.interface import External

__all__ = [
    "Call",
    "argument_type",
    "call_in",
    "declarations",
    "metadata",
    "parameters",
    "split",
    "store_size",
]

_DECLARE = re.compile(r"^declare (.*?)@([\w.]+)\((.*)\)[^()]*$")
_METADATA = re.compile(r"^!(\d+) = (?:distinct )?!\{(.*)\}$", re.M)
_CALL = re.compile(r"^\s+(?:(%[\w.$-]+) = )?(?:tail |musttail |notail )?call (.*?)@([\w.]+)\(")
_TYPE = re.compile(r"(ptr(?: addrspace\(\d+\))?|<\d+ x \w+>|\[.*?\]|\{.*?\}|%[\w.]+|[a-z]\w*)")
_NOT_TYPES = {
    "noundef", "zeroext", "signext", "inreg", "nonnull", "readonly", "writeonly", "fastcc", "ccc",
    "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc", "fast", "internal", "noalias",
    "local_unnamed_addr", "range",
}  # fmt: skip


def split(text: str) -> list[str]:
    """Splits at commas outside all brackets and quotes."""
    parts, depth, start, quoted = [], 0, 0, False
    for i, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif char in "([{<":
            depth += 1
        elif char in ")]}>":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last or parts else []


def argument_type(text: str) -> str:
    """The type at the head of `ptr addrspace(1) readonly captures(none) %x`."""
    for match in _TYPE.finditer(text):
        if match[1] not in _NOT_TYPES:
            return match[1]
    raise ValueError(f"no type in {text!r}")


def declarations(text: str) -> list[External]:
    """The functions that a module declares and does not define."""
    found = []
    for line in text.splitlines():
        if line.startswith("declare ") and (match := _DECLARE.match(line)):
            arguments = tuple(argument_type(a) for a in split(match[3]) if a != "...")
            found.append(External(match[2], argument_type(match[1]), arguments))
    return found


def metadata(text: str) -> dict[str, str]:
    """The numbered metadata nodes: number → what stands between the braces."""
    return dict(_METADATA.findall(text))


def parameters(text: str, function: str) -> list[str]:
    """The parameters of a defined function, each with its type, attributes and name.

    Raises ValueError if the module does not define it.
    """
    match = re.search(rf'^define [^\n]*@"?{re.escape(function)}"?\((.*)\)[^()\n]*\{{$', text, re.M)
    if match is None:
        raise ValueError(f"the module does not define {function}")
    return split(match[1])


def store_size(kind: str) -> str:
    """Bytes that a value of a type takes in memory, as an LLVM constant of type i64."""
    match = re.fullmatch(r"(?:<(\d+) x (\w+)>|(\w+))", kind)
    widths = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
    if match is not None:
        scalar = match[2] or match[3]
        width = widths.get(scalar) or (int(scalar[1:]) if re.fullmatch(r"i\d+", scalar) else 0)
        if width:
            return str(-(-int(match[1] or 1) * width // 8))
    if kind.startswith("ptr"):
        return "8"
    return f"ptrtoint (ptr getelementptr ({kind}, ptr null, i64 1) to i64)"


@dataclass(frozen=True)
class Call:
    """One call instruction."""

    result: str
    """The name it defines, or empty."""
    kind: str
    name: str
    arguments: tuple[str, ...]
    """Each with its type and attributes."""


def call_in(line: str) -> Call | None:
    """The direct call that a line makes, or None."""
    match = _CALL.match(line)
    if match is None:
        return None
    depth, end = 1, match.end()
    while depth and end < len(line):
        depth += {"(": 1, ")": -1}.get(line[end], 0)
        end += 1
    return Call(
        match[1] or "",
        argument_type(match[2]),
        match[3],
        tuple(split(line[match.end() : end - 1])),
    )
