"""Edits that several rules offer: a device that is chosen at run time, an argument more."""

from __future__ import annotations

import ast
import re

from scanner.source.here import Here
from scanner.source.interface import DEVICE, Correction, Edit, Span

__all__ = ["chosen_device", "chosen_in_place", "first_argument", "moved_by_to", "renamed"]

_FIRST_CUDA = ("cuda", "cuda:0")
_OPENING = re.compile(r"[ \t]*\(")


def chosen_device(given: ast.expr, here: Here) -> Correction | None:
    """Another device in place of the text "cuda", which an argument is or holds.

    None where it is not the first CUDA device that is meant: which other one would be a guess.
    """
    text = here.value(given)
    if _is_compared(here) or not isinstance(text, ast.Constant) or text.value not in _FIRST_CUDA:
        return None
    span = here.module.span(text)
    if text is given:
        return _correction(Edit(span, DEVICE))
    return _correction(Edit(span, _choice("torch")), imports=("import torch",))


def chosen_in_place(call: ast.Call, here: Here) -> Correction | None:
    """The same for `torch.device("cuda")`: the device is chosen there."""
    text = here.value(call.args[0]) if len(call.args) == 1 and not call.keywords else None
    if _is_compared(here) or not isinstance(text, ast.Constant):
        return None
    if text.value not in _FIRST_CUDA:
        return None
    torch = call.func.value if isinstance(call.func, ast.Attribute) else None
    if text is call.args[0] and torch is not None and here.resolve(torch) == "torch":
        choice = _choice(here.module.source(torch))
        return _correction(Edit(here.module.span(text), choice))
    return _correction(Edit(here.module.span(text), _choice("torch")), imports=("import torch",))


def moved_by_to(call: ast.Call, here: Here) -> Correction | None:
    """`x.to(device)` in place of `x.cuda()`; None where a certain CUDA device is meant."""
    keywords = [each.arg for each in call.keywords]
    if call.args or "device" in keywords or "async" in keywords:
        return None
    name, opening = renamed(call.func, "to", here), first_argument(call, DEVICE, here)
    return _correction(name, opening) if opening is not None else None


def renamed(function: ast.expr, name: str, here: Here) -> Edit:
    """An edit of the last part of a dotted name."""
    *_, line, end = here.module.span(function)
    old = function.attr if isinstance(function, ast.Attribute) else here.module.source(function)
    return Edit(Span(line, end - len(old), line, end), name)


def first_argument(call: ast.Call, text: str, here: Here) -> Edit | None:
    """An edit that puts an argument in front of all others; None where the place is unclear."""
    *_, line, column = here.module.span(call.func)
    found = _OPENING.match(here.module.lines[line - 1], column - 1)
    if found is None:
        return None
    rest = here.module.lines[line - 1][found.end() :]
    if call.args or call.keywords:
        text += "," if not rest or rest[0].isspace() else ", "
    place = found.end() + 1
    return Edit(Span(line, place, line, place), text)


def _correction(*edits: Edit, imports: tuple[str, ...] = ()) -> Correction:
    # Unsafe: asking for CUDA when a file is imported is seen by processes that are forked later,
    # and what has .cuda() need not have .to().
    return Correction("Use a device that is chosen at run time", False, edits, imports)


def _is_compared(here: Here) -> bool:
    """`x.device == torch.device("cuda")` asks for CUDA, and for nothing else."""
    return any(isinstance(each, ast.Compare) for each in here.path)


def _choice(torch: str) -> str:
    return (
        f'"cuda" if {torch}.cuda.is_available() '
        f'else "mps" if {torch}.backends.mps.is_available() else "cpu"'
    )
