"""Infinities and NaN: where they may be, where they must be, and where the two references differ.

Arithmetic says nothing about them, so each element is first put into a category. A device must be
in the category of the CPU's result or of the raised one: a half-precision overflow that the CPU has
too is no fault, and neither is a device that does not overflow where the raised reference does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Category", "categories", "category_faults"]

_FINITE, _NAN, _UP, _DOWN = 0, 1, 2, 3


@dataclass
class Category:
    """For each element how it is to be judged."""

    finite: Tensor
    """Judged by its error."""
    appears: Tensor
    """Not finite on the device where both references are, or of the wrong kind."""
    vanishes: Tensor
    """Finite on the device where neither reference is."""
    use_cpu: Tensor | None
    """Where the raised reference is not finite and the CPU's result stands in for it."""

    @property
    def faults(self) -> Tensor:
        """Elements whose category is wrong."""
        return self.appears | self.vanishes

    @property
    def faulty(self) -> bool:
        """Whether any element's category is wrong."""
        return bool(self.faults.any())

    def reference(self, cpu: Tensor, raised: Tensor | None) -> Tensor:
        """What is right, in double precision."""
        wide = cpu.to(torch.complex128 if cpu.is_complex() else torch.float64)
        if raised is None:
            return wide
        return raised if self.use_cpu is None else torch.where(self.use_cpu, wide, raised)

    def masked(self, values: Tensor) -> Tensor:
        """Zero where the category decides, and where the CPU alone is not finite."""
        return torch.where(self.finite, values, 0.0).nan_to_num(0.0, 0.0, 0.0)


def categories(device: Tensor, cpu: Tensor, raised: Tensor | None) -> Category:
    """Sorts the elements of one output."""
    wide = cpu if raised is None else raised
    everything = device.isfinite() & cpu.isfinite() & wide.isfinite()
    if bool(everything.all()):
        none = torch.zeros_like(everything)
        return Category(everything, none, none, None)
    ours, theirs, right = _kind(device), _kind(cpu), _rounded_kind(wide, cpu.dtype)
    finite = ours == _FINITE
    allowed = (ours == theirs) | (ours == right)
    if raised is not None:
        # Past the largest number both rounding up and staying finite are right.
        beyond = (right != _FINITE) & wide.isfinite()
        allowed = allowed | (finite & beyond)
    wrong = ~allowed
    use_cpu = (~wide.isfinite()) & (theirs == _FINITE)
    return Category(finite & allowed, wrong & ~finite, wrong & finite, use_cpu)


def _kind(tensor: Tensor) -> Tensor:
    if tensor.is_complex():
        # Which part of a complex infinity is NaN depends on the order of operations.
        return torch.where(torch.view_as_real(tensor).isfinite().all(-1), _FINITE, _NAN)
    kinds = torch.where(tensor.isnan(), _NAN, _FINITE)
    kinds = torch.where(tensor == torch.inf, _UP, kinds)
    return torch.where(tensor == -torch.inf, _DOWN, kinds)


def _rounded_kind(wide: Tensor, dtype: torch.dtype) -> Tensor:
    """The category that the value has once it is rounded to the dtype."""
    return _kind(wide.to(dtype))


def category_faults(kinds: Category) -> Iterator[tuple[str, int]]:
    """Detectors that fire, with the number of elements."""
    for detector, mask in (("nan-appears", kinds.appears), ("nan-vanishes", kinds.vanishes)):
        count = int(mask.sum())
        if count:
            yield detector, count
