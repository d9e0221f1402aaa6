"""What half precision costs in accuracy: a variant and float32, both beside double precision.

A variant is judged against the CPU in its own dtype, where an overflow that every machine has is no
fault. Whoever casts wants to know of it all the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
import torch
from torch import Tensor

from scanner.backends.interface import Device
from scanner.probe.attempt import attempt
from scanner.probe.autocast import WIDE, in_dtype
from scanner.probe.expected import Expected, dense
from scanner.probe.inputs import captured, drawn
from scanner.probe.rebuild import Operands
from scanner.probe.schema import Schema, schema_of
from scanner.probe.standards import private_outputs, standard_of
from scanner.records import OpCall

__all__ = ["Precision", "precision_of"]


class Precision(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration in two dtypes, from the same float32 values."""

    error: float | None
    """The largest |variant − double| ÷ the largest |double| of its output, worst output; None when
    no element is finite in both."""
    base_error: float | None
    """The same of float32."""
    overflows: int
    """Elements that are finite in double precision, and infinite or NaN in the variant alone."""
    elements: int


def precision_of(device: Device, variant: OpCall, dtype: str, seed: int) -> Precision | None:
    """Runs `variant` (in `dtype`) and what it is a variant of; None where values mean nothing.

    What the device raises is raised.
    """
    schema, base = schema_of(variant.op), in_dtype(variant, WIDE, of=dtype)
    standard = standard_of(schema, base)
    if not standard.compares_values:
        return None
    operands = drawn(schema, base, seed)
    expected = Expected(schema, base, operands, standard, widest=1 << 31)
    if expected.raised is None:
        return None
    hidden = private_outputs(schema, base)
    right = {
        name: dense(value)
        for name, value in expected.raised.outputs.items()
        if name not in hidden and value.is_floating_point()
    }
    cast = captured(variant, operands.tensors)
    half, full = (_run(device, schema, *each) for each in ((variant, cast), (base, operands)))
    return _compared(right, half, full)


def _run(device: Device, schema: Schema, call: OpCall, operands: Operands) -> dict[str, Tensor]:
    run = attempt(device, schema, call, operands, (), 0)
    if run.error is not None:
        raise run.error
    return {name: value.to(torch.float64) for name, value in run.outputs.items()}


def _compared(
    right: Mapping[str, Tensor], half: Mapping[str, Tensor], full: Mapping[str, Tensor]
) -> Precision:
    lost = [
        int((value.isfinite() & full[name].isfinite() & ~half[name].isfinite()).sum())
        for name, value in right.items()
    ]
    return Precision(
        error=_error(right, half),
        base_error=_error(right, full),
        overflows=sum(lost),
        elements=sum(value.numel() for value in right.values()),
    )


def _error(right: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> float | None:
    errors = []
    for name, value in right.items():
        finite = value.isfinite() & found[name].isfinite()
        if bool(finite.any()):
            error = float((found[name] - value)[finite].abs().max())
            scale = float(value[finite].abs().max())
            errors.append(error / scale if scale else 0.0 if not error else math.inf)
    worst = max(errors, default=math.inf)
    return worst if math.isfinite(worst) else None
