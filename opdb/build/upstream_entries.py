"""What OpInfo entries say themselves of PyTorch's consistency tests on MPS, from their source.

An entry is a call such as `OpInfo("lerp", dtypes=…, dtypesIfMPS=…, skips=(DecorateInfo(…), …))`.
Its decorators for `TestConsistency` and the dtypes that it is run with on MPS are evaluated with
names for dtypes, by system; entries that are not written out with a literal name are passed over.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["DTYPES_FILE", "FILES", "Own", "definitions", "entries"]

FILES = (
    "torch/testing/_internal/common_methods_invocations.py",
    *(
        f"torch/testing/_internal/opinfo/definitions/{name}.py"
        for name in ("_masked", "fft", "linalg", "signal", "sparse", "special")
    ),
)
DTYPES_FILE = "torch/testing/_internal/common_dtype.py"

_TESTS = {"test_output_match": "forward", "test_output_grad_match": "gradient"}
_DTYPES = {
    *("float16", "bfloat16", "float32", "complex32", "complex64"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
}
"""Without double precision, which MPS' lists speak of themselves."""

Names = Mapping[str, Any]


class Own(NamedTuple):
    """One fact about one entry on one system."""

    key: str
    """Name and variant, joined without a separator."""
    direction: str
    kind: str
    """`xfail` or `skip`; `skip` as well for dtypes that the entry is not run with."""
    dtypes: str
    """Names joined by commas, `*` for all."""


def definitions(source: str) -> list[ast.Call]:
    """The calls of a file that make entries."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [call for call in calls if _name(call)]


def entries(calls: Iterable[ast.Call], names: Names) -> Iterator[Own]:
    """Facts of definitions; `names` are what their expressions use, among them `MACOS_VERSION`."""
    for call in calls:
        given = {word.arg: word.value for word in call.keywords if word.arg}
        variant = _value(given.get("variant_test_name"), names)
        key = _name(call) + (variant if isinstance(variant, str) else "")
        yield from (Own(key, *fact) for fact in _facts(given, names))


def _name(call: ast.Call) -> str:
    """The entry's name when the call makes one."""
    made = call.func.id if isinstance(call.func, ast.Name) else ""
    if not made.endswith("Info") or made in {"DecorateInfo", "PythonRefInfo"} or not call.args:
        return ""
    first = call.args[0]
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def _facts(given: Names, names: Names) -> Iterator[tuple[str, str, str]]:
    for word in ("decorators", "skips"):
        for node in ast.walk(given[word]) if word in given else ():
            if isinstance(node, ast.Call) and _called(node) == "DecorateInfo":
                yield from _decorator(node, names)
    run = _first(given, names, "dtypesIfMPS", "dtypes")
    back = _first(given, names, "backward_dtypesIfMPS", "backward_dtypes")
    for direction, dtypes in (("forward", run), ("gradient", back)):
        if dtypes is not None and (left := _DTYPES - set(dtypes)):
            yield direction, "skip", ",".join(sorted(left))


def _first(given: Names, names: Names, *words: str) -> tuple[str, ...] | None:
    """The value of the first argument that is given; None when it is none that can be told."""
    value = next((given[word] for word in words if word in given), None)
    dtypes = _value(value, names)
    return dtypes if isinstance(dtypes, tuple) else None


def _decorator(call: ast.Call, names: Names) -> Iterator[tuple[str, str, str]]:
    """`DecorateInfo(decorator, test class, test, device_type=…, dtypes=…, active_if=…)`."""
    words = {word.arg: word.value for word in call.keywords if word.arg}
    where = [_value(each, names) for each in call.args[1:]]
    kind = {"expectedFailure": "xfail", "skip": "skip"}.get(_called(call.args[0]))
    if kind is None or where[:1] != ["TestConsistency"] or not _applies(words, names):
        return
    direction = _TESTS.get(where[1]) if where[1:] else "forward"
    if direction is not None:
        yield direction, kind, _joined(_value(words.get("dtypes"), names))


def _joined(dtypes: object) -> str:
    return ",".join(sorted(dtypes)) if isinstance(dtypes, tuple | list) else "*"


def _applies(words: Names, names: Names) -> bool:
    active = _value(words["active_if"], names) if "active_if" in words else True
    active = active(None) if callable(active) else active
    return bool(active) and _value(words.get("device_type"), names) in {None, "mps"}


def _called(node: ast.expr) -> str:
    """The last name of a function, or of what is called: `unittest.skip("…")` is `skip`."""
    if isinstance(node, ast.Call):
        return _called(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _value(node: ast.expr | None, names: Names) -> Any:
    """What an expression is; None when it is not there or uses what is not known."""
    if node is None:
        return None
    try:
        return eval(compile(ast.Expression(node), "<entry>", "eval"), dict(names))
    except (NameError, TypeError, AttributeError):
        return None
