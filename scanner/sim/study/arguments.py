"""The `--args` language: the arguments of one op as one line.

    args     item ("," item)*
    item     [name "="] value
    value    tensor | values | number | "True" | "False" | "None" | word | text | list
    tensor   shape [":" dtype [range]] ["@cpu"]   drawn; "3:float32", "2x3", "scalar"
    values   dtype "[" numbers "]"                given; float32[0,nan], int64[[1,2],[3,4]]
    range    "[" low "," high "]"
    number   3 | -0.5 | 1e-3 | inf | nan | 1+2j
    word     float16 | channels_last | cpu | mean
    text     '"' characters '"'
    list     "[" value ("," value)* "]" | "[" "]"

Shapes, dtypes and ranges are those of `--inputs`. A number alone is a number, so a vector is
written with its dtype. A tensor without a dtype has that of `--dtype`.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Any

from scanner.errors import UsageError
from scanner.locate.spec import DTYPES, SpecParser, TensorInput, tensor_dtype

__all__ = ["Item", "Tensor", "TensorValues", "known_dtype", "parse_arguments"]

_EXAMPLE = 'for example --args "64:float32[-4,4],int64[[0,2]],dim=-1,keepdim=True"'
_DTYPE = re.compile(r"(\w+)\[")
_TENSOR = re.compile(r"scalar\b|\d+x|\d+\s*:")
_WORD = re.compile(r"[^\W\d]\w*")
_TEXT = re.compile(r'"([^"]*)"')
_REAL = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_COMPLEX = re.compile(rf"[-+]?{_REAL}[-+]{_REAL}j|[-+]?{_REAL}j")
_FLOAT = re.compile(rf"[-+]?(?:{_REAL}|inf\b|nan\b)")
_CONSTANTS = {"True": True, "False": False, "None": None}


@dataclass(frozen=True)
class TensorValues:
    """A tensor whose values are given."""

    dtype: str
    values: tuple[Any, ...]
    """Nested as the tensor's dimensions; numbers."""


Tensor = TensorInput | TensorValues
Item = tuple[str | None, Any]
"""Name (None for a positional one) and value: a `Tensor`, a Python value, or a list of them."""


def parse_arguments(text: str, dtype: str = "float32") -> tuple[Item, ...]:
    """The arguments in order; raises `UsageError` with the position and a caret."""
    return tuple(_Parser(text, dtype).inputs().items) if text.strip() else ()


def known_dtype(name: str) -> str:
    """The dtype that a name or its short form spells; raises `UsageError` with what is near."""
    found = tensor_dtype(name)
    if found is None:
        close = difflib.get_close_matches(name, DTYPES, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"One of {', '.join(DTYPES)}."
        raise UsageError(f"there is no dtype {name}", remedy=hint)
    return found


class _Parser(SpecParser):
    option = "--args"
    example = _EXAMPLE

    def __init__(self, text: str, dtype: str) -> None:
        super().__init__(text)
        self.default_dtype = dtype

    def _value(self) -> Any:
        self._skip()
        if self._take("["):
            return self._list()
        if match := _TEXT.match(self.text, self.at):
            self.at = match.end()
            return match[1]
        if (match := _DTYPE.match(self.text, self.at)) and match[1] in DTYPES:
            self.at = match.end()
            return self._values(match[1])
        if _TENSOR.match(self.text, self.at):
            return self._tensor()
        return self._scalar()

    def _list(self) -> list[Any]:
        items: list[Any] = []
        while not self._take("]"):
            items.append(self._value())
            if not self._peek("]"):
                self._expect(",", 'expected "," or "]"')
        return items

    def _values(self, dtype: str) -> TensorValues:
        start = self.at - 1
        values = self._nested(dtype)
        if _shape(values) is None:
            raise self._error("rows of a tensor must be of one length", start)
        return TensorValues(dtype, values)

    def _nested(self, dtype: str) -> tuple[Any, ...]:
        items: list[Any] = []
        while not self._take("]"):
            if self._take("["):
                items.append(self._nested(dtype))
            else:
                items.append(self._element(dtype))
            if not self._peek("]"):
                self._expect(",", 'expected "," or "]"')
        return tuple(items)

    def _element(self, dtype: str) -> Any:
        start = self._skip()
        value = self._scalar()
        fits = {"bool": bool, "int": int | bool, "uint": int | bool}
        kind = re.sub(r"\d.*", "", dtype)
        if not isinstance(value, fits.get(kind, int | float | bool | complex)):
            raise self._error(f"expected a value of {dtype}", start)
        return value

    def _scalar(self) -> Any:
        if match := _COMPLEX.match(self.text, self.at):
            self.at = match.end()
            return complex(match.group())
        if match := _FLOAT.match(self.text, self.at):
            self.at = match.end()
            text = match.group()
            return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
        if match := _WORD.match(self.text, self.at):
            self.at = match.end()
            return _CONSTANTS.get(match.group(), match.group())
        raise self._error("expected a tensor such as 4x4:float32, a number, a name or a list")


def _shape(values: Any) -> tuple[int, ...] | None:
    """Sizes of nested tuples; None when they are ragged."""
    if not isinstance(values, tuple):
        return ()
    inner = {_shape(item) for item in values}
    if len(inner) > 1 or None in inner:
        return None
    return (len(values), *(inner.pop() or () if inner else ()))
