"""Another way to write a call that a target cannot run, where there is one right answer.

The ways are those that findings about captured ops name (`scanner/judge/rules/equivalents.py`),
each proven equal on the CPU; for a few functions of one tensor, the call itself on the CPU.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from scanner.source.here import Here
from scanner.source.interface import Correction, Edit, Span

if TYPE_CHECKING:
    from scanner.judge.rules.equivalents import Equivalent

__all__ = ["ON_CPU", "rewritten"]

ON_CPU = frozenset(
    [
        *("torch.cholesky_inverse", "torch.logcumsumexp", "torch.matrix_exp"),
        *("torch.linalg.cond", "torch.linalg.det", "torch.linalg.eigvals", "torch.linalg.eigvalsh"),
        *("torch.linalg.matrix_exp", "torch.linalg.svdvals"),
    ]
)
"""Functions of one tensor that return one tensor."""
_METHOD = "torch.Tensor."
_TENSOR = ("x", "input", "A")
"""What the tensor is called, in patterns and where it may be given by name."""


class _Given(NamedTuple):
    """One argument, and how it is written."""

    node: ast.expr
    text: str


def rewritten(name: str, op: str, release: str, call: ast.Call, here: Here) -> Correction | None:
    """The call in other words; None where no words are known, or the place does not allow them.

    `name` is the qualified name, `op` what it reaches that the release lacks.
    """
    from opdb import query
    from scanner.judge.rules.equivalents import equivalent_for

    if "\n" in here.module.source(call):
        return None  # comments may stand in it
    found = equivalent_for(op, release, query)
    if found is not None and _last(name) == _last(_pattern(found.call)[0]):
        return _by_equivalent(found, name, call, here)
    return _on_cpu(call, here) if name in ON_CPU else None


def _by_equivalent(found: Equivalent, name: str, call: ast.Call, here: Here) -> Correction | None:
    _, parameters, part = _pattern(found.call)
    whole: ast.AST = call
    if part:
        whole = here.parent
        if not isinstance(whole, ast.Attribute) or whole.attr != part:
            return None
    given = _arguments(name, call, parameters, dict(found.defaults), here)
    text = None if given is None else _filled(found.instead, given)
    if text is None:
        return None
    imports = ("import torch",) if "torch." in found.instead else ()
    edits = (Edit(here.module.span(whole), text),)
    return Correction(f"Write {found.instead}", False, edits, imports)


def _on_cpu(call: ast.Call, here: Here) -> Correction | None:
    """The call on the CPU, its result where its argument was."""
    tensor = call.args[0] if call.args else None
    if tensor is None or not _is_plain(tensor):
        return None
    *_, line, column = here.module.span(tensor)
    *_, end, last = here.module.span(call)
    name = here.module.source(tensor)
    edits = (
        Edit(Span(line, column, line, column), ".cpu()"),
        Edit(Span(end, last, end, last), f".to({name}.device)"),
    )
    return Correction("Run it on the CPU", False, edits)


def _pattern(call: str) -> tuple[str, tuple[str, ...], str]:
    """Function, parameters, and the part of the result: `torch.kthvalue(x, k, dim).values`."""
    whole, _, part = call.partition(").")
    function, _, arguments = whole.removesuffix(")").partition("(")
    return function, tuple(arguments.split(", ")), part


def _arguments(
    name: str, call: ast.Call, parameters: tuple[str, ...], defaults: Mapping[str, str], here: Here
) -> dict[str, _Given] | None:
    """Parameter → what is given; None for arguments that the pattern does not have."""
    values = list(call.args)
    if name.startswith(_METHOD) and isinstance(call.func, ast.Attribute):
        values.insert(0, call.func.value)
    if len(values) > len(parameters) or any(isinstance(each, ast.Starred) for each in values):
        return None
    found = {
        parameter: _Given(value, here.module.source(value))
        for parameter, value in zip(parameters, values, strict=False)
    }
    for keyword in call.keywords:
        parameter = parameters[0] if keyword.arg in _TENSOR else keyword.arg
        if parameter is None or parameter not in parameters or parameter in found:
            return None
        found[parameter] = _Given(keyword.value, here.module.source(keyword.value))
    for parameter, text in defaults.items():
        found.setdefault(parameter, _Given(ast.parse(text, mode="eval").body, text))
    return found if len(found) == len(parameters) else None


def _filled(instead: str, given: Mapping[str, _Given]) -> str | None:
    """The words with arguments in them; None where one would be computed twice."""
    body = ast.parse(instead, mode="eval").body
    names = [node for node in ast.walk(body) if isinstance(node, ast.Name) and node.id in given]
    text = instead
    for node in sorted(names, key=lambda each: each.col_offset, reverse=True):
        value = given[node.id]
        if sum(each.id == node.id for each in names) > 1 and not _is_plain(value.node):
            return None
        before, after = text[: node.col_offset], text[node.end_col_offset :]
        alone = before.endswith(("(", ", ")) and after.startswith((")", ","))
        number = isinstance(value.node, ast.Constant) and not after.startswith(".")
        text = before + _atom(value, alone=alone or number) + after
    return text if isinstance(body, ast.Call | ast.Subscript | ast.Attribute) else f"({text})"


def _atom(given: _Given, *, alone: bool) -> str:
    """An argument as it may stand there, in parentheses unless it is `alone` between commas."""
    atoms = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
    plain = isinstance(given.node, atoms) or (alone and _is_plain(given.node))
    return given.text if plain else f"({given.text})"


def _is_plain(node: ast.expr) -> bool:
    """A name, a chain of attributes or a number: the same each time it is read."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Name | ast.Constant)


def _last(name: str) -> str:
    return name.rpartition(".")[2]
