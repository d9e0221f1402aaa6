"""The `--inputs` language: shapes, dtypes and value ranges of a model's inputs as one line.

    inputs   item ("," item)*
    item     [name "="] value
    value    tensor | literal | "(" value ("," value)* ")" | "[" value ("," value)* "]"
    tensor   shape [":" dtype [range]] ["@cpu"]
    shape    "scalar" | size ("x" size)*
    range    "[" low "," high "]"
    literal  "True" | "False" | "None" | "int(" number ")" | "float(" number ")"

Items without a name are positional and come first. A tensor without a dtype is float32. A range
holds its low end and not its high end, as `torch.randint` has it. `@cpu` keeps a tensor on the
host, as packed sequences want their lengths.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from scanner.errors import UsageError

__all__ = [
    "DTYPES",
    "Group",
    "InputSpec",
    "Literal",
    "Number",
    "SpecParser",
    "TensorInput",
    "Value",
    "format_inputs",
    "format_value",
    "parse_inputs",
    "tensor_dtype",
]

Number = int | float

_ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
}
_FLOATS = ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
_INTS = ("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64")
DTYPES = (*_FLOATS, *_INTS, "bool", "complex64", "complex128")
"""Names of `torch.dtype`s that an input may have."""

_TOO_LARGE = 2**63
_EXAMPLE = 'for example --inputs "x=1x3x224x224:float32,ids=2x128:int64[0,50257]"'
_NAME = re.compile(r"[^\W\d]\w*(?==)")
_WORD = re.compile(r"\w+")
_SHAPE = re.compile(r"scalar\b|\d+(?:x\d+)*")
_CONSTANT = re.compile(r"(True|False|None)\b")
_CAST = re.compile(r"(int|float)\(\s*([^()\s]*)\s*\)")
_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?))\s*")


@dataclass(frozen=True, kw_only=True)
class TensorInput:
    """One tensor argument."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: Number | None = None
    """First value that may occur; None where no range is given."""
    high: Number | None = None
    """First value above those that may occur."""
    on_host: bool = False
    """Whether the tensor stays on the CPU when the model is on the GPU."""


@dataclass(frozen=True)
class Literal:
    """A Python value passed as it is."""

    value: bool | int | float | None


@dataclass(frozen=True)
class Group:
    """A tuple or list of values."""

    items: tuple[Value, ...]
    is_list: bool = False


Value = TensorInput | Literal | Group


@dataclass(frozen=True)
class InputSpec:
    """The arguments of one call."""

    items: tuple[tuple[str | None, Value], ...]
    """(name, value) in order; None for positional ones, which come first."""


def parse_inputs(text: str) -> InputSpec:
    """Parse a spec; raises `UsageError` with the position and a caret when it is malformed."""
    return SpecParser(text).inputs()


def format_inputs(spec: InputSpec) -> str:
    """The shortest spelling that parses to the same spec."""
    return ",".join(
        (f"{name}=" if name is not None else "") + format_value(value) for name, value in spec.items
    )


def format_value(value: Value) -> str:
    """One value as `parse_inputs` reads it."""
    if isinstance(value, Group):
        inner = ",".join(map(format_value, value.items))
        return f"[{inner}]" if value.is_list else f"({inner})"
    if isinstance(value, Literal):
        plain = value.value is None or isinstance(value.value, bool)
        return str(value.value) if plain else f"{type(value.value).__name__}({value.value!r})"
    shape = "x".join(map(str, value.shape)) or "scalar"
    bounds = f"[{value.low!r},{value.high!r}]" if value.low is not None else ""
    return f"{shape}:{value.dtype}{bounds}{'@cpu' if value.on_host else ''}"


def tensor_dtype(word: str) -> str | None:
    """`float16` for `half`; None for what is no dtype."""
    dtype = _ALIASES.get(word, word)
    return dtype if dtype in DTYPES else None


class SpecParser:
    """Recursive descent over one spec; `at` is the next character to read.

    A language with other values than a model's inputs overrides `_value`.
    """

    option = "--inputs"
    example = _EXAMPLE
    default_dtype = "float32"
    """Of a tensor that names none."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def inputs(self) -> InputSpec:
        """The whole spec; raises `UsageError` at the first character that does not belong."""
        items: list[tuple[str | None, Value]] = []
        while True:
            start = self._skip()
            item = self._item()
            self._check_name(item[0], items, start)
            items.append(item)
            self._skip()
            if self.at == len(self.text):
                return InputSpec(tuple(items))
            self._expect(",", 'expected "," before the next input')

    def _check_name(self, name: str | None, items: list[tuple[str | None, Value]], at: int) -> None:
        names = [other for other, _ in items]
        if name is None and any(other is not None for other in names):
            raise self._error("a positional input cannot follow a named one", at)
        if name is not None and name in names:
            raise self._error(f"{name} is given twice", at)

    def _item(self) -> tuple[str | None, Value]:
        match = _NAME.match(self.text, self.at)
        if match:
            self.at = match.end() + 1
            self._skip()
        return (match.group() if match else None), self._value()

    def _value(self) -> Value:
        self._skip()
        if self.text[self.at : self.at + 1] in ("(", "["):
            return self._group()
        if match := _CONSTANT.match(self.text, self.at):
            self.at = match.end()
            return Literal({"True": True, "False": False, "None": None}[match.group()])
        if match := _CAST.match(self.text, self.at):
            return self._cast(match)
        return self._tensor()

    def _cast(self, match: re.Match[str]) -> Literal:
        try:
            number = {"int": int, "float": float}[match[1]](match[2])
        except ValueError:
            raise self._error(f"expected {match[1]} value", match.start(2)) from None
        self.at = match.end()
        return Literal(number)

    def _group(self) -> Group:
        is_list = self.text[self.at] == "["
        close = "]" if is_list else ")"
        self.at += 1
        items = [self._value()]
        while self._take(","):
            if self._peek(close):
                break
            items.append(self._value())
        self._expect(close, f'expected "," or "{close}"')
        return Group(tuple(items), is_list)

    def _tensor(self) -> TensorInput:
        match = _SHAPE.match(self.text, self.at)
        if not match:
            raise self._error('expected a shape such as 1x3x224x224, or "scalar"')
        self.at = match.end()
        sizes = match.group()
        shape = () if sizes == "scalar" else tuple(int(size) for size in sizes.split("x"))
        if self.text[self.at : self.at + 1] == "x":
            raise self._error("expected a size after the x", self.at + 1)
        if any(size >= _TOO_LARGE for size in shape):
            raise self._error("a size is too large", match.start())
        dtype, low, high = self.default_dtype, None, None
        if self._take(":"):
            dtype = self._dtype()
            low, high = self._range(dtype)
        return TensorInput(shape=shape, dtype=dtype, low=low, high=high, on_host=self._host())

    def _host(self) -> bool:
        if not self._take("@"):
            return False
        match = _WORD.match(self.text, self.at)
        if match is None or match.group() != "cpu":
            raise self._error('expected "cpu" after "@"; other tensors are on the GPU')
        self.at = match.end()
        return True

    def _dtype(self) -> str:
        self._skip()
        match = _WORD.match(self.text, self.at)
        word = match.group() if match else ""
        dtype = tensor_dtype(word)
        if dtype is None:
            close = difflib.get_close_matches(word, [*DTYPES, *_ALIASES], n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise self._error(f"expected a dtype such as float32 or int64{hint}")
        self.at += len(word)
        return dtype

    def _range(self, dtype: str) -> tuple[Number | None, Number | None]:
        start = self._skip()
        if not self._take("["):
            return None, None
        if dtype not in (*_FLOATS, *_INTS):
            raise self._error(f"{dtype} takes no range", start)
        low = self._number(dtype)
        self._expect(",", 'expected "," between the ends of the range')
        high = self._number(dtype)
        self._expect("]", 'expected "]" after the range')
        if not low < high:
            raise self._error("a range must end above its start (its end is not included)", start)
        return low, high

    def _number(self, dtype: str) -> Number:
        match = _NUMBER.match(self.text, self.at)
        if not match:
            raise self._error("expected a number")
        try:
            number = int(match[1]) if dtype in _INTS else float(match[1])
        except ValueError:
            raise self._error(f"a range of {dtype} has integer ends", match.start(1)) from None
        self.at = match.end()
        return number

    def _skip(self) -> int:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
        return self.at

    def _peek(self, char: str) -> bool:
        self._skip()
        return self.text[self.at : self.at + 1] == char

    def _take(self, char: str) -> bool:
        found = self._peek(char)
        self.at += found
        return found

    def _expect(self, char: str, problem: str) -> None:
        if not self._take(char):
            raise self._error(problem)

    def _error(self, problem: str, at: int | None = None) -> UsageError:
        position = self.at if at is None else at
        where = f"{self.option}, character {position + 1}: {problem}"
        return UsageError(f"{where}\n  {self.text}\n  {' ' * position}^", remedy=self.example)
