"""What several themes of rules ask about a place."""

from __future__ import annotations

import ast
import re
from itertools import pairwise

from scanner.source.here import Here
from scanner.source.interface import Edit, Span

__all__ = [
    "added_argument",
    "annotated",
    "before",
    "is_cuda",
    "is_true",
    "on_cpu",
    "tested",
    "tried",
    "word_in_file",
]
_HOST = re.compile(r"(?<![a-z])(?:host|cpu)(?![a-z])")


def is_cuda(device: str | None) -> bool:
    """Whether a string names a CUDA device: `cuda`, `cuda:1`."""
    return device is not None and device.partition(":")[0] == "cuda"


def on_cpu(device: ast.expr | None, here: Here) -> bool:
    """Whether a device is the CPU, or is called so: `torch.device("cpu")`, `host`."""
    if device is None:
        return False
    value = here.value(device)
    if isinstance(value, ast.Call) and here.resolve(value.func) == "torch.device" and value.args:
        value = value.args[0]
    return here.string(value) == "cpu" or bool(_HOST.search(here.module.source(device)))


def annotated(here: Here) -> bool:
    """Whether the node is part of an annotation, which makes nothing."""
    for parent, child in pairwise(here.path):
        if child is getattr(parent, "annotation", None) or child is getattr(
            parent, "returns", None
        ):
            return True
    return False


def is_true(node: ast.expr | None) -> bool:
    """Whether an argument is the literal `True`."""
    return isinstance(node, ast.Constant) and node.value is True


def tried(here: Here) -> bool:
    """Whether errors of this place are caught: it stands in a `try` that has a handler."""
    return any(
        isinstance(parent, ast.Try) and parent.handlers and child in parent.body
        for parent, child in pairwise(here.path)
    )


def tested(here: Here) -> bool:
    """Whether anything was tested on the way here, or an error of it would be caught."""
    return bool(here.conditions) or tried(here)


def word_in_file(here: Here, *words: str) -> bool:
    """Whether the file's text has one of these words."""
    return any(word in here.module.text for word in words)


def added_argument(here: Here, call: ast.Call, text: str) -> tuple[Edit, ...]:
    """An edit that gives a call one more keyword argument; none where the place is unclear."""
    given: list[ast.expr] = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not given:
        line, column = _end(here, call)
        return (Edit(Span(line, column - 1, line, column - 1), text),)
    last = max(given, key=lambda each: (each.end_lineno or 0, each.end_col_offset or 0))
    if isinstance(last, ast.GeneratorExp) or any(key.arg is None for key in call.keywords):
        return ()
    line, column = _after(here, last, call)
    return (Edit(Span(line, column, line, column), f", {text}"),)


def before(here: Here, release: tuple[int, int]) -> tuple[str, ...]:
    """Versions of torch among the targets that are older than a release; empty without targets."""
    return tuple(
        target.version
        for target in here.targets
        if target.framework == "torch" and _release(target.version) < release
    )


def _release(version: str) -> tuple[int, int]:
    major, _, rest = version.partition(".")
    minor = rest.partition(".")[0]
    return (int(major) if major.isdecimal() else 0, int(minor) if minor.isdecimal() else 0)


def _end(here: Here, node: ast.AST) -> tuple[int, int]:
    span = here.module.span(node)
    return span.end_line, span.end_column


def _after(here: Here, last: ast.expr, call: ast.Call) -> tuple[int, int]:
    """Behind the last argument, and behind the parentheses that it may have of its own."""
    line, column = _end(here, last)
    end_line, end_column = _end(here, call)
    between = here.module.slice(Span(line, column, end_line, end_column - 1))
    depth = 0
    for index, sign in enumerate(between):
        if sign == "\n" or sign == "#":
            break
        depth = index + 1 if sign == ")" else depth
    return line, column + depth
