"""Calls that only make something or pass it on, and so may be evaluated or looked through."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
from types import SimpleNamespace
from typing import Any

import torch

from scanner.locate.reading.trees import root_name

__all__ = [
    "BUILTINS",
    "called_name",
    "is_kept_by",
    "is_refined",
    "is_wrapper",
    "only_builds",
    "unwrapped_call",
]

BUILTINS = frozenset(
    [
        "abs",
        "bool",
        "dict",
        "float",
        "frozenset",
        "int",
        "len",
        "list",
        "max",
        "min",
        "range",
        "round",
        "set",
        "sorted",
        "str",
        "sum",
        "tuple",
        "zip",
        "enumerate",
        "reversed",
        "vars",
    ]
)
_MAKERS = frozenset({"tensor", "ones", "zeros", "full", "device", "arange", "linspace", "eye"})
"""Functions of torch that only make a tensor."""
_KEEPING = frozenset(
    [
        "to",
        "cuda",
        "cpu",
        "mps",
        "train",
        "eval",
        "half",
        "float",
        "double",
        "bfloat16",
        "requires_grad_",
        "apply",
        "compile",
    ]
)
"""Methods that return the module they are called on, for our purposes."""
_WRAPPERS = frozenset({"compile", "DataParallel", "DistributedDataParallel", "DDP", "prepare"})


def called_name(node: ast.Call) -> str:
    """The last name of what is called; empty when it has none."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def is_refined(value: ast.expr, name: str) -> bool:
    """Whether `name = value` only passes the same object on: `model = model.to(device)`."""
    if root_name(value) == name:
        return True
    wrapped = isinstance(value, ast.Call) and called_name(value) in _WRAPPERS and value.args
    return bool(wrapped) and root_name(value.args[0]) == name  # type: ignore[attr-defined]


def only_builds(function: Any) -> bool:
    """Whether calling the function makes an object and does nothing else."""
    if inspect.isclass(function):
        plain = function.__module__ == "builtins" and function.__name__ in BUILTINS
        return (
            plain
            or issubclass(function, torch.nn.Module | torch.optim.Optimizer | SimpleNamespace)
            or (dataclasses.is_dataclass(function))
            or function is torch.device
        )
    name = getattr(function, "__name__", "")
    if name in BUILTINS and getattr(builtins, name) is function:
        return True
    module = getattr(function, "__module__", None) or "torch"
    return module.split(".")[0] == "torch" and name in _MAKERS


def unwrapped_call(node: ast.expr) -> ast.expr:
    """The expression below `.to(device)`, `torch.compile(…)` and the like."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING - {"compile"}:
            node = node.func.value
        elif called_name(node) in _WRAPPERS and node.args:
            node = node.args[0]
        else:
            break
    return node


def is_wrapper(name: str) -> bool:
    """Whether a function of this name returns its first argument, for our purposes."""
    return name in _WRAPPERS


def is_kept_by(node: ast.expr) -> bool:
    """Whether the expression is a method that returns the module it is called on."""
    return isinstance(node, ast.Attribute) and node.attr in _KEEPING
