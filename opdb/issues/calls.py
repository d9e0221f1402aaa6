"""Configurations as one line of text: what fixtures of issues are written in.

    addcmul_(self=float32[4,8].strides(1,4), tensor1=float32[4,8], tensor2=float32[4,8], value=0.5)
    cat(tensors=[float16[2,3], float16[2,0]], dim=0)
    relu(self=float32[1,8,69998]) >> float32[1,8,69998]
    mul_.Scalar(self=float32[()], other=2.0).during("optimizer")

A tensor is `dtype[sizes]`, `dtype[()]` without dimensions. It is row major, at offset 0, and on the
device, unless it says otherwise: `.strides(1, 4)`, `.offset(3)`, `.channels_last`, `.on_cpu`,
`.layout("sparse_coo")`, `.alias(0)` (shares the storage of the tensor at that position). Results
stand after `>>`: a tensor or a list of them. Everything else is a Python literal; a bare name is a
string, so that `dtype=float16` reads as in Python.
"""

from __future__ import annotations

import ast
from math import prod
from typing import Any, get_args

import msgspec

from scanner.records import OpCall, Phase, TensorSpec

__all__ = ["SpellingError", "read_call"]


class SpellingError(Exception):
    """Text that is no configuration."""


def read_call(text: str) -> OpCall:
    """The configuration; SpellingError says what is wrong with the text."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise SpellingError(f"{text!r}: {error.msg}") from error
    tree, outputs = _split_outputs(tree)
    tree, phase = _split_phase(tree)
    if not isinstance(tree, ast.Call) or tree.args:
        raise SpellingError(f"{text!r} is not op(argument=value, …)")
    inputs, attributes = _arguments(tree)
    return OpCall(
        op=f"aten::{ast.unparse(tree.func)}",
        phase=phase,
        inputs=inputs,
        outputs=outputs,
        attributes=attributes,
    )


def _split_outputs(tree: ast.expr) -> tuple[ast.expr, tuple[TensorSpec, ...]]:
    if not (isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.RShift)):
        return tree, ()
    items = tree.right.elts if isinstance(tree.right, ast.List | ast.Tuple) else [tree.right]
    return tree.left, tuple(_tensor(str(index), item) for index, item in enumerate(items))


def _split_phase(tree: ast.expr) -> tuple[ast.expr, Phase]:
    match tree:
        case ast.Call(
            func=ast.Attribute(value=ast.Call() as call, attr="during"),
            args=[ast.Constant(value=str(phase))],
        ):
            return call, _phase(phase)
    return tree, "forward"


def _phase(text: str) -> Phase:
    for phase in get_args(Phase):
        if phase == text:
            return phase  # type: ignore[no-any-return]
    raise SpellingError(f"there is no phase {text!r}: {', '.join(get_args(Phase))}")


def _arguments(call: ast.Call) -> tuple[tuple[TensorSpec, ...], dict[str, Any]]:
    inputs: list[TensorSpec] = []
    attributes: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise SpellingError("** has no meaning here")
        if tensors := _tensors(keyword.arg, keyword.value):
            inputs += tensors
        else:
            attributes[keyword.arg] = _literal(keyword.value)
    return tuple(inputs), attributes


def _tensors(name: str, node: ast.expr) -> list[TensorSpec]:
    """Tensors of one argument; none when it is something else."""
    if isinstance(node, ast.List) and any(map(_is_tensor, node.elts)):
        named = [(f"{name}[{index}]", item) for index, item in enumerate(node.elts)]
        return [_tensor(key, item) for key, item in named if _is_tensor(item)]
    return [_tensor(name, node)] if _is_tensor(node) else []


def _is_tensor(node: ast.expr) -> bool:
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)


def _tensor(name: str, node: ast.expr) -> TensorSpec:
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        shape = _sizes(ast.literal_eval(node.slice))
        stride = tuple(prod(shape[dim + 1 :]) for dim in range(len(shape)))
        return TensorSpec(name=name, dtype=node.value.id, shape=shape, stride=stride)
    values = tuple(ast.literal_eval(argument) for argument in getattr(node, "args", ()))
    method = node.func if isinstance(node, ast.Call) else node
    if not isinstance(method, ast.Attribute):
        raise SpellingError(f"{ast.unparse(node)!r} is not a tensor")
    return _changed(_tensor(name, method.value), method.attr, values)


def _changed(tensor: TensorSpec, change: str, values: tuple[Any, ...]) -> TensorSpec:
    """The tensor with one `.change(values)` made."""
    match change, values:
        case "strides", _ if len(values) == len(tensor.shape):
            changes: dict[str, Any] = {"stride": values}
        case "channels_last", ():
            changes = {"stride": _channels_last(tensor.shape)}
        case "on_cpu", ():
            changes = {"device": "cpu"}
        case "layout", (str(layout),):
            changes = {"layout": layout, "stride": ()}
        case (("offset" | "alias"), (int(number),)):
            changes = {change: number}
        case _:
            raise SpellingError(f".{change}{values} does not fit {tensor.dtype}{tensor.shape}")
    return msgspec.structs.replace(tensor, **changes)


def _channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    channels, *space = shape[1:]
    inner = [channels * prod(space[dim + 1 :]) for dim in range(len(space))]
    return (channels * prod(space), 1, *inner)


def _sizes(value: Any) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, tuple) else (int(value),)


def _literal(node: ast.expr) -> Any:
    """A Python literal, where names are strings: `[float16, "a", -1]`."""
    if isinstance(node, ast.Name) and node.id not in {"True", "False", "None"}:
        return node.id
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(item) for item in node.elts]
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise SpellingError(f"{ast.unparse(node)!r} is not a literal") from error
