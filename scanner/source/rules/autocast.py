"""Mixed precision."""

from __future__ import annotations

import ast

from scanner.source.here import Here
from scanner.source.interface import Hit, source_rule
from scanner.source.triggers import imports, names

__all__ = ["RULES"]


@source_rule(
    "OPS640",
    "cuda-amp",
    "warning",
    since="0.1.0",
    on=[names("torch.cuda.amp.*"), imports("torch.cuda.amp")],
    tokens=["amp"],
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
    if isinstance(node, ast.Name) or here.only_on_cuda:
        return None  # the import says it
    return here.hit(
        node,
        f"{here.name} works with CUDA alone and turns itself off on a Mac",
        "Use torch.autocast(device_type=device.type) and torch.amp.GradScaler(device.type).",
    )


RULES = (cuda_amp,)
