"""Devices that are compared with text."""

from __future__ import annotations

import ast

from scanner.source.here import Here
from scanner.source.interface import Correction, Edit, Hit, source_rule
from scanner.source.triggers import nodes

__all__ = ["RULES"]

_DEVICES = ("cuda", "mps", "cpu", "xpu")
_QUOTED = [f"{quote}{device}" for quote in "\"'" for device in _DEVICES]
_MAKERS = ("torch.device", "torch.accelerator.current_accelerator")


@source_rule(
    "OPS607",
    "device-is-no-string",
    "error",
    since="0.1.0",
    on=[nodes(ast.Compare)],
    tokens=_QUOTED,
    fixes="unsafe",
)
def device_is_no_string(node: ast.AST, here: Here) -> Hit | None:
    """A `torch.device` is compared with a string, which is never equal.

        device = torch.device("mps")
        if device == "mps":      # False
        if "mps" in device:      # TypeError: argument of type 'torch.device' is not iterable

    opscan reports it where the file itself shows that the value is a `torch.device`.

    ## What to do

    Compare the type: `device.type == "mps"`.
    """
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    left, right = node.left, node.comparators[0]
    if isinstance(node.ops[0], ast.In | ast.NotIn):
        left, right = right, left
    elif not isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return None
    text = here.string(right)
    if text is None or text.partition(":")[0] not in _DEVICES or not _is_device(left, here):
        return None
    return here.hit(
        node,
        f'{here.module.source(left)} is a torch.device, and "{text}" a string',
        f"Compare its type: {here.module.source(left)}.type.",
        correction=_of_type(node, left, text, here),
    )


def _of_type(node: ast.Compare, left: ast.expr, text: str, here: Here) -> Correction | None:
    if ":" in text:
        return None
    sign = "==" if isinstance(node.ops[0], ast.Eq | ast.In) else "!="
    edit = Edit(here.module.span(node), f'{here.module.source(left)}.type {sign} "{text}"')
    return Correction("Compare the device's type", safe=False, edits=(edit,))


def _is_device(node: ast.expr, here: Here) -> bool:
    if here.maker(node) in _MAKERS:
        return True
    if isinstance(node, ast.Attribute) and node.attr == "device":
        made = here.maker(node.value) or ""
        return made.startswith("torch.") and made.rpartition(".")[2].islower()
    return isinstance(node, ast.Name) and _is_declared(node.id, here)


def _is_declared(name: str, here: Here) -> bool:
    """A parameter of the function around that is annotated as a `torch.device` alone."""
    function = here.function
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    found = here.scopes[-1].find(name)
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return any(
        each.arg == name
        and each.annotation is not None
        and here.resolve(each.annotation) == "torch.device"
        and found is not None
        and found[0].value is None
        and not _is_assigned(name, function)
        for each in every
    )


def _is_assigned(name: str, function: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
        for each in ast.walk(function)
    )


@source_rule(
    "OPS608",
    "device-text-without-index",
    "warning",
    since="0.1.0",
    on=[nodes(ast.Compare)],
    tokens=_QUOTED,
    fixes="unsafe",
)
def device_text_without_index(node: ast.AST, here: Here) -> Hit | None:
    """The text of a tensor's device has an index: `mps:0`, never `mps`.

        if str(x.device) == "mps":  # False: it is "mps:0"

    A tensor on a GPU always knows the index of its device, also where it was made with `"mps"`.

    ## What to do

    Compare the type: `x.device.type == "mps"`.
    """
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    call, text = node.left, here.string(node.comparators[0])
    if text not in ("cuda", "mps") or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return None
    if not isinstance(call, ast.Call) or here.resolve(call.func) != "builtins.str":
        return None
    of = call.args[0] if len(call.args) == 1 else None
    if not isinstance(of, ast.Attribute) or of.attr != "device" or _is_self(of.value):
        return None
    sign = "==" if isinstance(node.ops[0], ast.Eq) else "!="
    edit = Edit(here.module.span(node), f'{here.module.source(of)}.type {sign} "{text}"')
    return here.hit(
        node,
        f'str({here.module.source(of)}) is "{text}:0" for a tensor, never "{text}"',
        f"Compare {here.module.source(of)}.type.",
        correction=Correction("Compare the device's type", safe=False, edits=(edit,)),
    )


def _is_self(node: ast.expr) -> bool:
    """`self.device` is whatever the class made it."""
    return isinstance(node, ast.Name) and node.id in ("self", "cls", "args", "config", "cfg", "opt")


RULES = (device_is_no_string, device_text_without_index)
