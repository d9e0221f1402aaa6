"""Mixed precision."""

from __future__ import annotations

import ast

from scanner.source.here import Here
from scanner.source.interface import DEVICE, Correction, Edit, Hit, Span, source_rule
from scanner.source.rules.guards import never_on_mps
from scanner.source.rules.mending import first_argument
from scanner.source.rules.shared import annotated
from scanner.source.triggers import imports, names

__all__ = ["RULES"]


@source_rule(
    "OPS640",
    "cuda-amp",
    "warning",
    since="0.1.0",
    on=[names("torch.cuda.amp.*"), imports("torch.cuda.amp")],
    tokens=["amp"],
    fixes="unsafe",
)
def cuda_amp(node: ast.AST, here: Here) -> Hit | None:
    """`torch.cuda.amp` is mixed precision for CUDA alone: on a Mac it turns itself off.

    `torch.cuda.amp.autocast()` and `GradScaler()` warn that CUDA is not available and do nothing:
    the model trains in float32, slower and with more memory than was planned for. Both are
    deprecated since torch 2.4.

    ## What to do

    Use the variants that take a device: `torch.autocast(device_type=device.type,
    dtype=torch.float16)` and `torch.amp.GradScaler(device.type)`.
    """
    if isinstance(node, ast.Name) or never_on_mps(here) or _is_aside(here):
        return None  # the import says it
    return here.hit(
        node,
        f"{here.name} works with CUDA alone and turns itself off on a Mac",
        "Use torch.autocast(device_type=device.type) and torch.amp.GradScaler(device.type).",
        correction=_imported(here) if isinstance(node, ast.alias) else _called(node, here),
    )


def _is_aside(here: Here) -> bool:
    """An annotation, an import for want of a newer one, or `autocast(device == "cuda")`."""
    if here.name.startswith("torch.cuda.amp.common") or _is_of_old_releases(here):
        return True
    call = here.parent
    return (
        annotated(here)
        or _is_switched_off(call)
        or any(isinstance(each, ast.ExceptHandler) for each in here.path)
        or (isinstance(call, ast.Call) and _names_cuda(call, here))
        or _is_switched(here.node, here)
    )


def _is_switched(alias: ast.AST, here: Here) -> bool:
    """Whether every use of an import is `GradScaler(enabled=cuda)` or `autocast(False)`."""
    if not isinstance(alias, ast.alias):
        return False
    name = alias.asname or alias.name
    calls = [
        each
        for each in ast.walk(here.module.tree)
        if isinstance(each, ast.Call) and here.module.source(each.func).partition(".")[0] == name
    ]
    return bool(calls) and all(_is_switched_off(each) or _names_cuda(each, here) for each in calls)


def _names_cuda(call: ast.Call, here: Here) -> bool:
    given = [*call.args, *(each.value for each in call.keywords)]
    return any("cuda" in here.module.source(each) for each in given)


def _is_switched_off(call: ast.AST) -> bool:
    """`autocast(enabled=False)`, which is off everywhere."""
    if not isinstance(call, ast.Call):
        return False
    given = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "enabled")]
    return any(isinstance(each, ast.Constant) and each.value is False for each in given)


def _is_of_old_releases(here: Here) -> bool:
    """`torch.amp.GradScaler() if TORCH_2_4 else torch.cuda.amp.GradScaler()`."""
    said = (here.module.source(test).lower() for test, _ in here.conditions)
    return any("version" in text or "torch_" in text or "hasattr" in text for text in said)


_POSITIONAL = {"autocast": ("enabled", "dtype", "cache_enabled"), "GradScaler": None}
"""Parameters of what works on CUDA alone, where they are in another order elsewhere."""


def _called(node: ast.AST, here: Here) -> Correction | None:
    """Of `torch.cuda.amp.autocast()`."""
    name = here.name.rpartition(".")[2]
    call = here.parent
    if name not in _POSITIONAL or not isinstance(call, ast.Call) or call.func is not node:
        return None
    given = _given(call, name, here)
    path = "torch.autocast" if name == "autocast" else f"torch.amp.{name}"
    edits = (Edit(here.module.span(node), path), *given)
    return _correction(edits, ("import torch",)) if given else None


def _imported(here: Here) -> Correction | None:
    """Of `from torch.cuda.amp import autocast, GradScaler`, with every call in the file."""
    statement = here.parent
    if not isinstance(statement, ast.ImportFrom) or statement.module != "torch.cuda.amp":
        return None
    edits = [_module(statement, here)]
    for each in statement.names:
        calls = _calls(each.asname or each.name, here) if each.name in _POSITIONAL else None
        given = [_given(call, each.name, here) for call in calls or ()]
        if calls is None or not all(given):
            return None
        edits += [edit for found in given for edit in found]
    return _correction(tuple(edits))


def _calls(name: str, here: Here) -> list[ast.Call] | None:
    """Calls of a name; None where it is used otherwise, or bound again."""
    every = list(ast.walk(here.module.tree))
    calls = [
        node
        for node in every
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]
    mentions = sum(isinstance(node, ast.Name) and node.id == name for node in every)
    parameters = any(isinstance(node, ast.arg) and node.arg == name for node in every)
    imported = sum(
        isinstance(node, ast.alias) and (node.asname or node.name) == name for node in every
    )
    defined = any(getattr(node, "name", None) == name for node in every if _is_scope(node))
    if parameters or defined or imported != 1 or mentions != len(calls):
        return None
    return calls


def _is_scope(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _module(statement: ast.ImportFrom, here: Here) -> Edit:
    line, column, *_ = here.module.span(statement)
    at = here.module.lines[line - 1].index("torch.cuda.amp", column - 1) + 1
    return Edit(Span(line, at, line, at + len("torch.cuda.amp")), "torch.amp")


def _given(call: ast.Call, name: str, here: Here) -> tuple[Edit, ...]:
    """The device as first argument, and names for those that had others before; may be none."""
    first = first_argument(call, f"{DEVICE}.type", here)
    parameters = _POSITIONAL[name] or ()
    if first is None or any(isinstance(each, ast.Starred) for each in call.args):
        return ()
    if any(each.arg is None or each.arg.startswith("device") for each in call.keywords):
        return ()
    edits = [first]
    for argument, parameter in zip(call.args, parameters, strict=False):
        if first.span[:2] == here.module.span(argument)[:2]:
            edits = [first._replace(text=f"{first.text}{parameter}=")]
        else:
            line, column, *_ = here.module.span(argument)
            edits.append(Edit(Span(line, column, line, column), f"{parameter}="))
    return tuple(edits)


def _correction(edits: tuple[Edit, ...], imports: tuple[str, ...] = ()) -> Correction:
    # Unsafe: without CUDA the old ones were off, the new ones are on.
    return Correction("Name the device", False, edits, imports)


RULES = (cuda_amp,)
