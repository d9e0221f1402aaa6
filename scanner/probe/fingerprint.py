"""A tensor, small enough to be brought back and compared for every op of a step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from scanner.capture.describe import dtype_name

__all__ = ["Fingerprint", "fingerprint"]

_SAMPLES = 1 << 16


@dataclass(frozen=True)
class Fingerprint:
    """What is kept of a tensor."""

    dtype: str
    shape: tuple[int, ...]
    lost: int
    """Elements that are infinite or NaN, of all."""
    samples: Tensor
    """At most 65536 elements at fixed places, first and last among them, float64 on the CPU."""


def fingerprint(tensor: Tensor) -> Fingerprint:
    """Of a tensor on any device."""
    flat = tensor.detach().reshape(-1)
    floating = tensor.is_floating_point() or tensor.is_complex()
    lost = int((~flat.isfinite()).sum()) if floating else 0
    count = flat.numel()
    if count > _SAMPLES:
        # In float64, since float32 cannot number the elements of a large tensor.
        places = torch.linspace(0, count - 1, _SAMPLES, dtype=torch.float64).long()
        flat = flat[places.to(flat.device)]
    picked = flat.to("cpu").resolve_conj().resolve_neg()
    if picked.is_complex():
        picked = torch.view_as_real(picked.to(torch.complex128)).reshape(-1)
    return Fingerprint(
        dtype_name(tensor.dtype), tuple(tensor.shape), lost, picked.to(torch.float64, copy=True)
    )
