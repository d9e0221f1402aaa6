"""Mixed precision, by device and release."""

from __future__ import annotations

import ast

from scanner.source.here import Here
from scanner.source.interface import DEVICE, Correction, Edit, Hit, source_rule
from scanner.source.rules.guards import never_on_mps
from scanner.source.rules.mending import first_argument
from scanner.source.rules.shared import before, is_cuda, is_true
from scanner.source.triggers import calls

__all__ = ["RULES"]

_AUTOCAST = ("torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast")
_SCALERS = ("torch.amp.GradScaler", "torch.amp.grad_scaler.GradScaler")
AUTOCAST_SINCE = (2, 5)
BFLOAT16_SINCE = (2, 6)
SCALER_SINCE = (2, 8)
"""Releases of torch from which on MPS has autocast, bfloat16 in it, and the ops of GradScaler."""


@source_rule(
    "OPS641", "autocast-cuda", "warning", since="0.1.0", on=[calls(*_AUTOCAST)], fixes="unsafe"
)
def autocast_cuda(node: ast.AST, here: Here) -> Hit | None:
    """Autocast is asked for on CUDA, so on a Mac it turns itself off.

        UserWarning: CUDA is not available or torch_xla is imported. Disabling autocast.

    The model then computes in float32, slower and with more memory than was planned for.

    ## What to do

    `torch.autocast(device_type=device.type, dtype=torch.float16)`. MPS has autocast from torch
    2.5, with bfloat16 from 2.6.
    """
    if not isinstance(node, ast.Call) or never_on_mps(here) or _is_off(node):
        return None
    given = here.argument(node, "device_type", 0)
    if given is None or not is_cuda(here.string(given)):
        return None
    return here.hit(
        node,
        f'{here.name}("cuda") turns itself off on a Mac',
        "Give device_type=device.type.",
        correction=_named(Edit(here.module.span(given), f"{DEVICE}.type")),
    )


def _named(edit: Edit | None) -> Correction | None:
    # Unsafe: without CUDA the old one was off, the new one is on.
    return Correction("Name the device", safe=False, edits=(edit,)) if edit is not None else None


def _is_off(call: ast.Call) -> bool:
    """`enabled=False`, or `enabled=x.is_cuda`."""
    given = Here.argument(call, "enabled")
    return given is not None and ("cuda" in ast.unparse(given) or ast.unparse(given) == "False")


@source_rule(
    "OPS642",
    "grad-scaler-cuda",
    "warning",
    since="0.1.0",
    on=[calls(*_SCALERS)],
    tokens=["GradScaler"],
    fixes="unsafe",
)
def grad_scaler_cuda(node: ast.AST, here: Here) -> Hit | None:
    """A gradient scaler for CUDA, which is also the default, turns itself off on a Mac.

        UserWarning: torch.cuda.amp.GradScaler is enabled, but CUDA is not available. Disabling.

    With autocast in float16 on MPS the gradients then are not scaled, and small ones become 0.

    ## What to do

    `torch.amp.GradScaler(device.type)`. MPS has what it needs from torch 2.8. With bfloat16 no
    scaler is needed.
    """
    if not isinstance(node, ast.Call) or never_on_mps(here) or _is_off(node):
        return None
    given = here.argument(node, "device", 0)
    if any(keyword.arg is None for keyword in node.keywords):
        return None
    if given is not None and not is_cuda(here.string(given)):
        return None
    return here.hit(
        node,
        "a GradScaler for CUDA turns itself off on a Mac",
        "Give it the device: torch.amp.GradScaler(device.type).",
        correction=_named(
            first_argument(node, f"{DEVICE}.type", here)
            if given is None
            else Edit(here.module.span(given), f"{DEVICE}.type")
        ),
    )


@source_rule(
    "OPS643",
    "autocast-too-early",
    "error",
    since="0.1.0",
    on=[calls(*_AUTOCAST, *_SCALERS)],
    tokens=["mps"],
)
def autocast_too_early(node: ast.AST, here: Here) -> Hit | None:
    """Mixed precision on MPS is asked of a release of torch that has it not, or not so.

    - `torch.autocast("mps")` raises before torch 2.5.
    - With `dtype=torch.bfloat16` it turns itself off before 2.6.
    - `torch.amp.GradScaler("mps")` raises before 2.8: it computes in float64, and its ops have no
      MPS kernel.

    It is reported for the targets of the scan that are older.

    ## What to do

    Upgrade, or train in float32 or in bfloat16 throughout.
    """
    if not isinstance(node, ast.Call):
        return None
    scaler = here.name in _SCALERS
    given = here.argument(node, "device" if scaler else "device_type", 0)
    if here.string(given) != "mps":
        return None
    dtype = here.argument(node, "dtype", 1)
    wide = dtype is not None and here.resolve(dtype) == "torch.bfloat16"
    since = SCALER_SINCE if scaler else BFLOAT16_SINCE if wide else AUTOCAST_SINCE
    return _too_early(node, here, f'{here.name}("mps")', since)


_ARGUMENTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")


@source_rule(
    "OPS644",
    "half-precision-trainer",
    "error",
    since="0.1.0",
    on=[calls(*_ARGUMENTS, "accelerate.Accelerator")],
    tokens=["fp16", "bf16"],
)
def half_precision_trainer(node: ast.AST, here: Here) -> Hit | None:
    """A trainer is asked for mixed precision, which the release of torch does not have on MPS.

    accelerate refuses `fp16` on MPS before torch 2.5 and `bf16` before 2.6, and the gradient scaler
    that `fp16` needs before 2.8:

        ValueError: Grad Scaler with MPS device requires a Pytorch >= 2.8.0

    It is reported for the targets of the scan that are older.

    ## What to do

    Upgrade torch, or train in float32.
    """
    if not isinstance(node, ast.Call):
        return None
    asked = here.string(here.argument(node, "mixed_precision"))
    if asked == "fp16" or is_true(here.argument(node, "fp16")):
        return _too_early(node, here, "fp16 on MPS", SCALER_SINCE)
    if asked == "bf16" or is_true(here.argument(node, "bf16")):
        return _too_early(node, here, "bf16 on MPS", BFLOAT16_SINCE)
    return None


def _too_early(node: ast.Call, here: Here, what: str, since: tuple[int, int]) -> Hit | None:
    old = before(here, since)
    if not old:
        return None
    release = ".".join(map(str, since))
    hit = here.hit(
        node,
        f"{what} needs torch {release}; the target has {', '.join(old)}",
        f"Upgrade to torch {release}, or compute in float32.",
    )
    return hit._replace(fixed_in=f"{release}.0")


RULES = (autocast_cuda, grad_scaler_cuda, autocast_too_early, half_precision_trainer)
