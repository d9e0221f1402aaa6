"""The language of conditions: Python expressions over the arguments of a call.

    self.rank > 4 and not self.contiguous
    kernel_size[0] != 1 and input.shape[2] % output_size[0] != 0
    any(t.is_half for t in inputs) and mode == "bilinear"

Names:

- every argument of the op by its schema name: a tensor is an `Operand` (`opdb.issues.operands`), a
  list of tensors a list of them, anything else its plain value (dtypes and memory formats are bare
  names, infinities strings); an argument that the call does not have is None;
- of an op that only MPS dispatches, also the arguments of the op that it stands for
  (`opdb.issues.lowered`): `_mps_convolution` has `input` and `transposed` too;
- `inputs` and `outputs`: all tensors, lists flattened; `out`: the first of `outputs`, or None;
- `op` (`aten::add_.Tensor`), `name` (`add_`), `overload` (`Tensor`), `inplace`, `phase`
  (`forward`, `loss`, `backward`, `optimizer`);
- `fallback`: whether PYTORCH_ENABLE_MPS_FALLBACK is set, `ram`: GiB, or None;
- the file's own `[constants]`;
- functions `all any len min max abs prod sorted int broadcast(a, b)` (shape of two operands, None
  when they do not fit) and `same(a, b)` (share a storage).

An operation on None (`weight.rank` without a weight) makes the condition false: write the test
that you mean first.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from itertools import zip_longest
from math import prod
from typing import Any

from simpleeval import DEFAULT_OPERATORS, EvalWithCompoundTypes, InvalidExpression

from opdb.issues.lowered import GENERAL
from opdb.issues.operands import Operand
from scanner.records import OpCall, Target

__all__ = ["ConditionError", "holds", "names_in", "parse", "vocabulary"]

_PROVIDED = frozenset(
    {"inputs", "outputs", "out", "op", "name", "overload", "inplace", "phase", "fallback", "ram"}
)


class ConditionError(Exception):
    """A condition that is no expression of the language, or uses a name that no op has."""


@cache
def parse(condition: str) -> ast.stmt:
    """The condition's tree. ConditionError when it is not one expression."""
    try:
        body = ast.parse(condition.strip()).body
    except SyntaxError as error:
        raise ConditionError(f"{condition!r} is not an expression: {error.msg}") from error
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        raise ConditionError(f"{condition!r} is not one expression")
    return body[0]


def names_in(condition: str) -> frozenset[str]:
    """Names that the condition expects the op to have: without functions and what is provided."""
    nodes = list(ast.walk(parse(condition or "True")))
    bound = {
        node.target.id
        for node in nodes
        if isinstance(node, ast.comprehension) and isinstance(node.target, ast.Name)
    }
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    return frozenset(used - bound - _PROVIDED - _FUNCTIONS.keys() - {"True", "False", "None"})


def vocabulary(call: OpCall, target: Target, constants: Mapping[str, Any] = {}) -> dict[str, Any]:
    """Values of all names for one call on one target."""
    name, _, overload = call.op.rpartition("::")[2].partition(".")
    outputs = [Operand(spec) for spec in call.outputs]
    return {
        **constants,
        **_arguments(name, call),
        "inputs": _inputs(call),
        "outputs": outputs,
        "out": outputs[0] if outputs else None,
        "op": call.op,
        "name": name,
        "overload": overload,
        "inplace": name.endswith("_") and not name.endswith("__"),
        "phase": call.phase,
        "fallback": target.fallback,
        "ram": target.ram,
    }


def holds(condition: str, names: Mapping[str, Any]) -> bool:
    """Whether a condition is true of a vocabulary.

    ConditionError for what the language does not have.
    """
    if not condition:
        return True
    try:
        return bool(_evaluator(names).eval(condition, previously_parsed=parse(condition)))
    except InvalidExpression as error:
        if _on_none(error):
            return False
        raise ConditionError(f"{condition!r}: {error}") from error
    except (TypeError, AttributeError, IndexError, KeyError):
        return False


def _evaluator(names: Mapping[str, Any]) -> Any:
    """An argument that the call does not have is None."""
    known = defaultdict(lambda: None, names)
    return EvalWithCompoundTypes(operators=DEFAULT_OPERATORS, functions=_FUNCTIONS, names=known)


def _on_none(error: InvalidExpression) -> bool:
    """An attribute of an argument that is not there, or not a tensor."""
    return type(error).__name__ == "AttributeDoesNotExist"


def _arguments(base: str, call: OpCall) -> dict[str, Any]:
    """Arguments by name, and by the names that the op has on every other backend."""
    given = call.attributes | _operands(call)
    if (general := GENERAL.get(base)) is None:
        return given
    renamed = {new: given[old] for old, new in general.names.items() if old in given}
    return {**given, **general.constants, **renamed}


def _operands(call: OpCall) -> dict[str, Any]:
    """Tensor arguments by name; elements of a list together, in order."""
    found: dict[str, Any] = {}
    for spec, operand in zip(call.inputs, _inputs(call), strict=True):
        name, bracket, _ = spec.name.partition("[")
        if bracket:
            found.setdefault(name, []).append(operand)
        else:
            found[name] = operand
    return found


def _inputs(call: OpCall) -> list[Operand]:
    return [Operand(spec, position) for position, spec in enumerate(call.inputs)]


def _broadcast(one: Operand, other: Operand) -> tuple[int, ...] | None:
    pairs = list(zip_longest(reversed(one.shape), reversed(other.shape), fillvalue=1))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        return None
    return tuple(b if a == 1 else a for a, b in reversed(pairs))


def _same(one: Operand, other: Operand) -> bool:
    return one.storage == other.storage


_FUNCTIONS: dict[str, Any] = {
    "abs": abs,
    "all": all,
    "any": any,
    "broadcast": _broadcast,
    "int": int,
    "len": len,
    "max": max,
    "min": min,
    "prod": prod,
    "same": _same,
    "sorted": sorted,
}
