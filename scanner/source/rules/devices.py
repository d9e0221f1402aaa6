"""Devices that the source names."""

from __future__ import annotations

import ast

from scanner.source.here import Here
from scanner.source.interface import Hit, source_rule
from scanner.source.rules.guards import never_on_mps
from scanner.source.rules.mending import chosen_device, chosen_in_place, moved_by_to
from scanner.source.rules.shared import is_cuda
from scanner.source.triggers import calls, methods

__all__ = ["RULES"]


@source_rule(
    "OPS601",
    "hard-coded-cuda",
    "error",
    since="0.1.0",
    on=[methods("cuda", "to"), calls("torch.device")],
    tokens=["cuda"],
    fixes="unsafe",
)
def hard_coded_cuda(node: ast.AST, here: Here) -> Hit | None:
    """A tensor or module is moved to CUDA, whatever the machine has.

    On a Mac, PyTorch is built without CUDA. The line raises:

        AssertionError: Torch not compiled with CUDA enabled

    opscan reports `x.cuda()`, `x.to("cuda")` and `torch.device("cuda:0")`, also where the name is
    in a variable that is assigned once. It says nothing where the file has tested for CUDA on the
    way: `if torch.cuda.is_available(): model.cuda()`, `if args.cuda:`.

    ## What to do

    Choose the device once and hand it on:

        device = torch.accelerator.current_accelerator() or torch.device("cpu")
        model.to(device)

    `torch.accelerator` is there from torch 2.6; before, test `torch.backends.mps.is_available()`.
    """
    if not isinstance(node, ast.Call) or never_on_mps(here) or _is_asked(here):
        return None
    what = here.module.source(node.func).rpartition(".")[2]
    if here.name == "cuda":
        if not _moves(node):
            return None
        message = f".{what}() needs CUDA, which no Mac has"
        correction = moved_by_to(node, here)
    elif (device := here.string(node.args[0] if node.args else None)) and is_cuda(device):
        message = f'{what}("{device}") needs CUDA, which no Mac has'
        moves = here.name == "to"
        correction = chosen_device(node.args[0], here) if moves else chosen_in_place(node, here)
    else:
        return None
    return here.hit(
        node,
        message,
        "Choose the device once, by torch.accelerator or torch.backends.mps.is_available(), and "
        "use .to(device).",
        correction=correction,
    )


def _is_asked(here: Here) -> bool:
    """`x.device.type == torch.device("cuda").type` makes nothing, nor does a comparison."""
    of_device = here.name == "torch.device"
    return of_device and isinstance(here.parent, ast.Attribute | ast.Compare)


def _moves(call: ast.Call) -> bool:
    """Whether the arguments are those of `Tensor.cuda` and `Module.cuda`."""
    known = {"device", "non_blocking", "async", "memory_format"}
    return len(call.args) < 3 and all(keyword.arg in known for keyword in call.keywords)


RULES = (hard_coded_cuda,)
