"""If a value reaches the GPU, as far as the source shows; without evidence rules say nothing."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from scanner.source.here import Here
from scanner.source.rules.guards import never_on_mps
from scanner.source.rules.shared import on_cpu, word_in_file

__all__ = ["stays_off_gpu"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Assigned = tuple[list[int], list[ast.expr]]
_OF_THE_CPU = re.compile(
    r"(?:^|_)(?:np|numpy|pil|convert\w*|conversion|export\w*|onnx|load|save|dump|read|write|to_json"
    r"|state_dict|ref|reference|naive|collate\w*|preprocess\w*|getitem|repr|str)(?:_|$)"
)
"""What the names of functions say of work that is done on the CPU."""
_DATA = re.compile(r"Dataset|Sampler|DataLoader|Reader|Writer|Converter|Exporter|Collat")
_LAYERS = re.compile(r"Module|Model\b|Layer|Net\b|Network|Block\b|Loss\b|Metric\b|PreTrained")
_STEPS = frozenset({"forward", "training_step", "validation_step", "compute_loss", "train_step"})
_MODELS = re.compile(r"(?:^|[._])(?:model|net|network|module)s?$")
_MAKERS = frozenset(
    [
        *("zeros", "ones", "empty", "full", "eye", "tensor", "as_tensor", "asarray", "arange"),
        *("linspace", "logspace", "rand", "randn", "randint", "randperm", "from_numpy"),
        *("hann_window", "hamming_window", "tril_indices", "triu_indices", "range"),
    ]
)
"""Functions of torch whose result is on the CPU when no device is given."""
_KEPT = frozenset({"register_buffer", "Parameter", "Buffer", "register_parameter"})
_NARROW = frozenset({"float", "half", "bfloat16", "long", "int"})
_DEPTH = 4
"""Assignments that are followed back."""


def stays_off_gpu(node: ast.expr, here: Here) -> bool:
    """Whether nothing shows that what `node` makes or takes reaches a Mac's GPU.

    In a script it is taken to do so, but for constants. In a function something has to show it: a
    layer or model around, a device that is mentioned, a training step, or a layer of the same file
    that calls the function. Values that are seen to be on the CPU stay there unless they are moved.
    """
    if never_on_mps(here) or _is_made_for_cpu(here):
        return True
    if (function := _outermost(here)) is None:
        return _says_cpu(node, here) and _is_constant(here.statement)
    if function.name == "double":
        return True  # it is asked for
    return not _is_reached(function, node, here) or _is_on_cpu(node, function, here)


def _outermost(here: Here) -> _Function | None:
    return next((each for each in here.path if isinstance(each, _Function)), None)


def _is_constant(statement: ast.AST) -> bool:
    """`_TABLE = torch.tensor(...)`, which is no script's."""
    targets = _targets(statement)
    return bool(targets) and all(getattr(each, "id", "").isupper() for each in targets)


def _is_made_for_cpu(here: Here) -> bool:
    """`def to_numpy`, `class Images(Dataset)`, `with torch.device("cpu")`."""
    for parent, child in pairwise(here.path):
        match parent:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if _OF_THE_CPU.search(name.strip("_")):
                    return True
            case ast.ClassDef(name=name, bases=bases):
                said = " ".join([name, *(here.module.source(each) for each in bases)])
                if _DATA.search(said):
                    return True
            case ast.With(items=items) if child in parent.body:
                if any(on_cpu(each.context_expr, here) for each in items):
                    return True
    return False


def _is_reached(function: _Function, node: ast.expr, here: Here) -> bool:
    """Whether something shows that a device other than the CPU comes here."""
    if any(isinstance(each, ast.ClassDef) and _is_layer(each, here) for each in here.path):
        return True
    if function.name in _STEPS or here.in_training_loop:
        return True
    if here.once(_has_device, function) or _is_of_models(node, here):
        return True
    return function.name in here.once(_used_by_layers, here.module.tree)


def _has_device(function: _Function, here: Here) -> bool:  # noqa: ARG001 - asked `once`
    return any(_mentions_device(each) for each in ast.walk(function))


def _is_of_models(node: ast.expr, here: Here) -> bool:
    """`model.double()`, `torch.nn.CTCLoss()`."""
    if not isinstance(node, ast.Call):
        return False
    if (here.resolve(node.func) or "").startswith("torch.nn."):
        return True
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    return receiver is not None and bool(_MODELS.search(here.module.source(receiver)))


def _is_layer(node: ast.ClassDef, here: Here) -> bool:
    if any(_LAYERS.search(here.module.source(base)) for base in node.bases):
        return True
    return any(isinstance(each, _Function) and each.name in _STEPS for each in node.body)


def _mentions_device(node: ast.AST) -> bool:
    match node:
        case ast.keyword(arg="device", value=ast.Constant(value="cpu" | None)):
            return False
        case ast.keyword(arg=str() as name) | ast.arg(arg=name) | ast.Name(id=name):
            return name in ("device", "dev", "accelerator")
        case ast.Attribute(attr=name):
            return name in ("device", "cuda", "_device")
    return False


def _used_by_layers(module: ast.Module, here: Here) -> frozenset[str]:
    """Names that the layers of the file mention."""
    layers = (
        each for each in module.body if isinstance(each, ast.ClassDef) and _is_layer(each, here)
    )
    parts = (part for each in layers for part in ast.walk(each))
    return frozenset(part.id for part in parts if isinstance(part, ast.Name))


def _is_on_cpu(node: ast.expr, function: _Function, here: Here) -> bool:
    """Whether the expression is seen to be on the CPU, and nothing moves it."""
    if word_in_file(here, "set_default_device") or _is_moved(function, here):
        return False
    whole = next((each for each in here.path if isinstance(each, ast.BinOp)), node)
    return _made_on_cpu(node, function, here, _DEPTH) or (
        whole is not node and _made_on_cpu(whole, function, here, _DEPTH)
    )


def _is_moved(function: _Function, here: Here) -> bool:
    """By the expression around, by what keeps it, or later by the name that it gets."""
    around = [each for each in here.path if isinstance(each, ast.Call)]
    if any(_moves(each) or _last(each.func) in _KEPT for each in around):
        return True
    if any(isinstance(each, ast.Attribute) and each.attr in _NARROW for each in here.path):
        return False
    names = {each.id for each in _targets(here.statement) if isinstance(each, ast.Name)}
    return not names.isdisjoint(here.once(_moved_names, function))


def _moved_names(function: _Function, here: Here) -> frozenset[str | None]:  # noqa: ARG001
    """Names whose values are moved or kept somewhere in the function."""
    every = [each for each in ast.walk(function) if isinstance(each, ast.Call)]
    moved = [each.func for each in every if _moves(each)]
    moved += [part for each in every if _last(each.func) in _KEPT for part in each.args]
    return frozenset(map(_root, moved))


def _root(node: ast.expr) -> str | None:
    """The name that a chain begins with, unless it narrows: `x` of `x.view(3).to`."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        if _last(node) in _NARROW:
            return None
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _moves(call: ast.Call) -> bool:
    """`.to(device)`, `.cuda()`, `device=x.device`."""
    name = _last(call.func)
    given = [*call.args, *(each.value for each in call.keywords)] if name == "to" else []
    given += [each.value for each in call.keywords if each.arg == "device"]
    return name == "cuda" or any(_is_device(each) for each in given)


def _is_device(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str() as text):
            return text.partition(":")[0] in ("cuda", "mps", "xpu")
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return not any(word in name for word in ("type", "cpu", "float", "double", "host"))
        case ast.Call():
            return "cpu" not in ast.dump(node)
    return False


def _made_on_cpu(node: ast.AST, function: _Function, here: Here, depth: int) -> bool:
    parts = list(ast.walk(node))
    if any(isinstance(each, ast.Call) and _moves(each) for each in parts):
        return False
    if any(_says_cpu(each, here) for each in parts):
        return True
    names = (each for each in parts if isinstance(each, ast.Name)) if depth else ()
    return any(
        _made_on_cpu(value, function, here, depth - 1)
        for each in names
        for value in _last_value(each, function, here)
    )


def _says_cpu(node: ast.AST, here: Here) -> bool:
    match node:
        case ast.Attribute(attr="cpu" | "numpy") | ast.Constant(value="cpu"):
            return True
        case ast.Call(func=func, keywords=keywords):
            module, _, name = (here.resolve(func) or "").rpartition(".")
            known = not any(each.arg in ("device", None) for each in keywords)
            return module == "torch" and name in _MAKERS and known
    return False


def _last_value(name: ast.Name, function: _Function, here: Here) -> Iterator[ast.expr]:
    """What the name was assigned in front of its use, in the order of lines."""
    lines, values = here.once(_assigned, function).get(name.id, ([], []))
    if place := bisect_left(lines, name.lineno):
        yield values[place - 1]


def _assigned(function: _Function, here: Here) -> dict[str, _Assigned]:  # noqa: ARG001
    """Name → lines in which it is assigned, sorted, and what; the first of a line counts."""
    found: dict[str, dict[int, ast.expr]] = {}
    for each in ast.walk(function):
        if isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None:
            for target in _targets(each):
                found.setdefault(getattr(target, "id", ""), {}).setdefault(each.lineno, each.value)
    return {
        name: ([line for line, _ in kept], [value for _, value in kept])
        for name, values in found.items()
        for kept in [sorted(values.items(), key=lambda each: each[0])]
    }


def _targets(statement: ast.AST) -> list[ast.expr]:
    match statement:
        case ast.Assign(targets=targets):
            return targets
        case ast.AnnAssign(target=target):
            return [target]
    return []


def _last(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))
