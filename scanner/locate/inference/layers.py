"""Follows an argument through the forward code to the first layer whose weights fix its shape."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from scanner.locate.reading.scopes import header
from scanner.locate.reading.trees import flat, function_node

__all__ = ["STATE", "Use", "first_layer", "first_use", "is_informative"]

_DEPTH = 12
STATE = "state"
"""`Use.function` of a recurrent layer that receives its state."""

_DATA_KEYWORDS = frozenset({"input", "x", "src", "tgt", "query", "key", "value"})
_FUNCTIONS = frozenset(
    ["linear", "conv1d", "conv2d", "conv3d", "embedding", "matmul", "mm", "bmm", "conv_transpose2d"]
)
_INFORMATIVE: tuple[type, ...] = (
    nn.Linear,
    nn.Bilinear,
    nn.Embedding,
    nn.EmbeddingBag,
    nn.modules.conv._ConvNd,
    nn.RNNBase,
    nn.RNNCellBase,
    nn.MultiheadAttention,
    nn.Transformer,
    nn.TransformerEncoderLayer,
    nn.TransformerDecoderLayer,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.modules.batchnorm._NormBase,
)


@dataclass(frozen=True)
class Use:
    """The layer, or bare parameter, that first receives an argument."""

    layer: Any
    function: str = ""
    """For a bare parameter: `linear`, `matmul`, `conv2d`, …; `STATE` for a recurrent state."""
    share: int = 1
    """How many arguments are concatenated before the layer."""


def is_informative(module: Any) -> bool:
    """Whether a layer's settings tell the shape or dtype of its input."""
    return isinstance(module, _INFORMATIVE)


def first_layer(model: nn.Module) -> Use | None:
    """The first informative layer in order of registration."""
    return next((Use(m) for m in model.modules() if is_informative(m)), None)


def first_use(model: Any, parameter: str, method: str = "forward") -> Use | None:
    """Where the named parameter of the model's method goes first; None when it is not found."""
    if not isinstance(model, nn.Module):
        return None
    return _Walk(model, _DEPTH).method(method, parameter)


class _Walk:
    """Data flow through one module's method, statement by statement."""

    def __init__(self, module: nn.Module, depth: int) -> None:
        self.module = module
        self.depth = depth
        self.tainted: set[str] = set()
        self.shares: dict[str, int] = {}
        self.bound: dict[str, Any] = {"self": module}

    def method(self, name: str, parameter: str) -> Use | None:
        node = function_node(getattr(type(self.module), name, None))
        if node is None or self.depth == 0:
            return None
        self.tainted = {parameter}
        for statement in flat(node.body):
            use = self._statement(statement)
            if use is not None:
                return use
        return None

    def _statement(self, statement: ast.stmt) -> Use | None:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            return None
        if isinstance(statement, ast.For):
            self._bind_loop(statement)
        for part in header(statement):
            use = self._expression(part)
            if use is not None:
                return use
        if isinstance(statement, ast.Assign):
            self._assign(statement)
        return None

    def _assign(self, statement: ast.Assign) -> None:
        carried = self._carries(statement.value)
        thing = self._resolve(statement.value)
        for target in statement.targets:
            for part in ast.walk(target):
                if not isinstance(part, ast.Name):
                    continue
                if carried:
                    self.tainted.add(part.id)
                    self.shares[part.id] = self._share(statement.value)
                else:
                    self.tainted.discard(part.id)
                if isinstance(thing, nn.Module):
                    self.bound[part.id] = thing

    def _bind_loop(self, loop: ast.For | ast.comprehension) -> None:
        """`for layer in self.layers`, also through enumerate and zip: binds the first element."""
        sources = [loop.iter]
        targets: list[ast.expr] = [loop.target]
        if isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name):
            sources = list(loop.iter.args)
            if isinstance(loop.target, ast.Tuple):
                skip = 1 if loop.iter.func.id == "enumerate" else 0
                targets = list(loop.target.elts[skip:])
        for source, target in zip(sources, targets, strict=False):
            container = self._resolve(source)
            children = list(container.children()) if isinstance(container, nn.Module) else []
            if children and isinstance(target, ast.Name):
                self.bound[target.id] = children[0]

    def _expression(self, node: ast.AST) -> Use | None:
        """Inner calls first, as they are evaluated."""
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            for generator in node.generators:
                self._bind_loop(generator)
        for child in ast.iter_child_nodes(node):
            use = self._expression(child)
            if use is not None:
                return use
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return self._product(node.left, node.right)
        return None

    def _call(self, node: ast.Call) -> Use | None:
        carried = [argument for argument in node.args if self._carries(argument)]
        named = [k for k in node.keywords if k.arg is not None and self._carries(k.value)]
        if not carried and not named:
            return None
        callee = self._resolve(node.func)
        if isinstance(callee, nn.Module):
            use = self._into(callee, "forward", node)
            share = max(map(self._share, [*carried, *(k.value for k in named)]))
            return use and dataclasses.replace(use, share=use.share * share)
        if isinstance(node.func, ast.Attribute) and self._is_self(node.func.value):
            return self._into(self.module, node.func.attr, node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else None
        if name in _FUNCTIONS and len(node.args) > 1:
            return self._functional(name, node.args)
        return None

    def _share(self, node: ast.AST) -> int:
        """Number of tensors that the expression concatenates with the argument among them."""
        found = [self.shares.get(n.id, 1) for n in ast.walk(node) if isinstance(n, ast.Name)]
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.args:
                parts = part.args[0]
                is_joined = part.func.attr in {"cat", "concat", "concatenate", "hstack"}
                if is_joined and isinstance(parts, ast.List | ast.Tuple):
                    found.append(len(parts.elts))
        return max(found, default=1)

    def _is_self(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == "self"

    def _into(self, module: nn.Module, method: str, node: ast.Call) -> Use | None:
        """Continues in a submodule or own method, with the parameter that gets the argument."""
        if method == "forward" and is_informative(module):
            return _received(module, node, self._carries)
        if method == "forward" and isinstance(module, nn.Sequential):
            return next(_inside(module, self.depth - 1), None)
        function = getattr(type(module), method, None)
        for parameter in _receivers(function, node, self._carries):
            use = _Walk(module, self.depth - 1).method(method, parameter)
            if use is not None:
                return use
        return None

    def _functional(self, name: str, args: list[ast.expr]) -> Use | None:
        at = 1 if name != "embedding" or self._carries(args[0]) else 0
        weight = self._resolve(args[at])
        if isinstance(weight, torch.Tensor) and weight.dim() >= 1:
            return Use(weight, "matmul" if name in {"mm", "bmm"} else name)
        return None

    def _product(self, left: ast.expr, right: ast.expr) -> Use | None:
        weight = self._resolve(right) if self._carries(left) else None
        return Use(weight, "matmul") if isinstance(weight, torch.Tensor) else None

    def _carries(self, node: ast.AST) -> bool:
        """Whether the expression holds the argument (its shape alone does not count)."""
        if isinstance(node, ast.Attribute) and node.attr in {"shape", "device", "dtype", "ndim"}:
            return False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_size = node.func.attr in {"size", "dim", "numel", "stride"}
            return not is_size and any(map(self._carries, ast.iter_child_nodes(node)))
        if isinstance(node, ast.Name):
            return node.id in self.tainted
        return any(self._carries(child) for child in ast.iter_child_nodes(node))

    def _resolve(self, node: ast.expr) -> Any:
        """The object that an expression on `self` or a bound layer denotes, else None."""
        if isinstance(node, ast.Name):
            return self.bound.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self._resolve(node.value)
            return None if owner is None else getattr(owner, node.attr, None)
        if isinstance(node, ast.Subscript):
            return self._item(self._resolve(node.value), node.slice)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            weight = self._resolve(node.func.value) if node.func.attr == "t" else None
            return weight.t() if isinstance(weight, torch.Tensor) else None
        return None

    def _item(self, owner: Any, index: ast.expr) -> Any:
        if isinstance(owner, nn.ModuleDict):
            key = index.value if isinstance(index, ast.Constant) else None
            known = isinstance(key, str) and key in owner
            return owner[str(key)] if known else next(iter(owner.children()), None)
        if isinstance(owner, nn.ModuleList | nn.Sequential):
            at = index.value if isinstance(index, ast.Constant) else 0
            within = isinstance(at, int) and -len(owner) <= at < len(owner)
            return owner[at] if within and isinstance(at, int) else None
        return None


def _received(layer: nn.Module, node: ast.Call, carries: Callable[[ast.AST], bool]) -> Use | None:
    """The layer as the user of its data argument or recurrent state; None for masks and such."""
    data = 3 if isinstance(layer, nn.MultiheadAttention) else 2 if _takes_two(layer) else 1
    if any(map(carries, node.args[:data])):
        return Use(layer)
    if any(k.arg in _DATA_KEYWORDS and carries(k.value) for k in node.keywords):
        return Use(layer)
    state = [*node.args[1:], *(k.value for k in node.keywords if k.arg in {"hx", "h_0"})]
    if isinstance(layer, nn.RNNBase | nn.RNNCellBase) and any(map(carries, state)):
        return Use(layer, STATE)
    return None


def _takes_two(layer: nn.Module) -> bool:
    return isinstance(layer, nn.Transformer | nn.TransformerDecoderLayer | nn.Bilinear)


def _inside(module: nn.Module, depth: int) -> Iterator[Use]:
    """Informative layers that the only input of a module passes, in order."""
    if is_informative(module):
        yield Use(module)
    elif isinstance(module, nn.Sequential):
        for child in module:
            yield from _inside(child, depth - 1)
    elif depth > 0:
        parameter = next(iter(_parameters(type(module).forward)), None)
        use = _Walk(module, depth).method("forward", parameter) if parameter else None
        if use is not None:
            yield use


def _parameters(function: Any) -> list[str]:
    try:
        return [name for name in inspect.signature(function).parameters if name != "self"]
    except (TypeError, ValueError):
        return []


def _receivers(function: Any, node: ast.Call, carries: Any) -> Iterator[str]:
    names = _parameters(function) if function is not None else []
    for name, argument in zip(names, node.args, strict=False):
        if carries(argument):
            yield name
    for keyword in node.keywords:
        if keyword.arg is not None and carries(keyword.value):
            yield keyword.arg
