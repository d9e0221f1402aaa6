"""Pinned memory, and copies that do not wait."""

from __future__ import annotations

import ast

from scanner.source.here import Here
from scanner.source.interface import Hit, source_rule
from scanner.source.rules.guards import never_on_mps
from scanner.source.rules.shared import is_true, on_cpu, word_in_file
from scanner.source.triggers import methods

__all__ = ["RULES"]

_NON_BLOCKING = (
    "https://github.com/pytorch/pytorch/issues/139550",
    "https://github.com/pytorch/pytorch/issues/189690",
)


@source_rule("OPS631", "pin-memory-call", "warning", since="0.1.0", on=[methods("pin_memory")])
def pin_memory_call(node: ast.AST, here: Here) -> Hit | None:
    """`x.pin_memory()` is made for CUDA; on a Mac it raised or misled in most releases.

    The data loader of torch 2.7 to 2.15 leaves pinning out on MPS, with the remark that it "would
    raise error". In user code it ended in `Attempted to set the storage of a tensor on device
    "cpu" to a storage on different device "mps:0"`.

    ## What to do

    Pin where there is CUDA: `if torch.cuda.is_available(): x = x.pin_memory()`. opscan says nothing
    where a condition on the way mentions CUDA or pinning.
    """
    if not isinstance(node, ast.Call) or node.args or never_on_mps(here):
        return None
    if any("pin" in here.module.source(test).lower() for test, _ in here.conditions):
        return None
    if any("pin_memory" in getattr(each, "name", "") for each in here.path):
        return None  # the protocol of data loaders, which do not call it on MPS
    return here.hit(
        node,
        ".pin_memory() is made for CUDA and fails on MPS in releases that opscan knows",
        "Pin only where torch.cuda.is_available().",
        links=("https://github.com/facebookresearch/sam2/pull/495",),
    )


@source_rule(
    "OPS632",
    "non-blocking-to-cpu",
    "warning",
    since="0.1.0",
    on=[methods("to", "cpu")],
    tokens=["non_blocking"],
)
def non_blocking_to_cpu(node: ast.AST, here: Here) -> Hit | None:
    """A copy to the CPU does not wait for the GPU, so that the values may not be there yet.

    `y = x.to("cpu", non_blocking=True)` returns at once. Reading `y` before the GPU has finished
    gives whatever was in that memory: no error, wrong numbers (pytorch#140296, for MPS too).

    ## What to do

    Leave `non_blocking` out, or wait before reading: `torch.mps.synchronize()`. opscan says nothing
    where the file synchronizes.
    """
    if not isinstance(node, ast.Call) or not is_true(here.argument(node, "non_blocking")):
        return None
    device = here.argument(node, "device", 0)
    to_cpu = here.name == "cpu" or on_cpu(device, here)
    if not to_cpu or never_on_mps(here) or word_in_file(here, "synchronize("):
        return None
    return here.hit(
        node,
        "a copy to the CPU that does not wait: its values may be read before they are there",
        "Leave non_blocking out, or synchronize before reading.",
        links=("https://github.com/pytorch/pytorch/issues/140296",),
    )


@source_rule(
    "OPS633",
    "non-blocking-to-mps",
    "note",
    since="0.1.0",
    on=[methods("to")],
    tokens=["non_blocking"],
)
def non_blocking_to_mps(node: ast.AST, here: Here) -> Hit | None:
    """A copy to the device with `non_blocking=True` has given wrong values on MPS.

    Reported and open: the GPU may read the CPU's tensor after it was released or written anew
    (pytorch#139550, pytorch#189690). Nothing raises; the numbers are wrong. On CUDA the same line
    is safe, since a copy from memory that is not pinned waits.

    ## What to do

    `non_blocking=(device.type == "cuda")`.
    """
    if not isinstance(node, ast.Call) or not is_true(here.argument(node, "non_blocking")):
        return None
    device = here.argument(node, "device", 0)
    text = here.string(device)
    if device is not None and "dtype" in here.module.source(device):
        return None
    if device is None or (text is not None and text != "mps") or on_cpu(device, here):
        return None
    if never_on_mps(here):
        return None
    return here.hit(
        node,
        "copies with non_blocking=True have given wrong values on MPS",
        'Write non_blocking=(device.type == "cuda").',
        links=_NON_BLOCKING,
    )


RULES = (pin_memory_call, non_blocking_to_cpu, non_blocking_to_mps)
