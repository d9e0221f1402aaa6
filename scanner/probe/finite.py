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

__all__ = ["Categories", "categories"]

_FINITE, _NAN, _UP, _DOWN = 0, 1, 2, 3


@dataclass(frozen=True)
class Categories:
    """For each element how it is to be judged; masks are None where all elements are finite."""

    finite: Tensor | None = None
    """Judged by its error."""
    appears: Tensor | None = None
    """Not finite on the device where both references are, or of the wrong kind."""
    vanishes: Tensor | None = None
    """Finite on the device where neither reference is."""
    use_cpu: Tensor | None = None
    """Where the raised reference is not finite and the CPU's result stands in for it."""

    @property
    def faulty(self) -> bool:
        """Whether any element's category is wrong."""
        return any(True for _ in self.faults())

    def faults(self) -> Iterator[tuple[str, int]]:
        """Detectors that fire, with the number of elements."""
        for detector, mask in (("nan-appears", self.appears), ("nan-vanishes", self.vanishes)):
            count = int(mask.sum()) if mask is not None else 0
            if count:
                yield detector, count

    def failing(self, others: Tensor) -> Tensor:
        """A mask of elements whose category is wrong, added to another mask."""
        if self.appears is None or self.vanishes is None:
            return others
        return others | self.appears | self.vanishes

    def reference(self, cpu: Tensor, raised: Tensor | None) -> Tensor:
        """What is right, in double precision."""
        if raised is not None and self.use_cpu is None:
            return raised
        wide = cpu.to(torch.complex128 if cpu.is_complex() else torch.float64)
        return wide if raised is None else torch.where(self.use_cpu, wide, raised)  # type: ignore[arg-type]

    def masked(self, values: Tensor) -> Tensor:
        """Zero where the category decides, and where the values are not finite."""
        if self.finite is None:
            return values
        return torch.where(self.finite, values, 0.0).nan_to_num(0.0, 0.0, 0.0)


def categories(
    device: Tensor, cpu: Tensor, raised: Tensor | None, *, spreads: bool = False
) -> Categories:
    """Sorts the elements of one output.

    With `spreads` a value that is not finite may reach elements that it does not reach on the CPU,
    and infinities may become NaN on the way: sums over products with zero do that, depending on
    the algorithm. It may still not vanish.
    """
    wide = cpu if raised is None else raised
    # A sum is finite only if every term is; should it overflow, the long way gives the answer.
    if bool((device.sum() + cpu.sum() + wide.sum()).isfinite()):
        return Categories()
    ours, theirs, right = _kind(device), _kind(cpu), _kind(wide.to(cpu.dtype))
    finite = ours == _FINITE
    allowed = (ours == theirs) | (ours == right)
    if raised is not None:
        # Past the largest number both rounding up and staying finite are right.
        allowed = allowed | (finite & (right != _FINITE) & wide.isfinite())
    if spreads:
        allowed = allowed | ~finite
    wrong = ~allowed
    use_cpu = (~wide.isfinite()) & (theirs == _FINITE)
    return Categories(finite & allowed, wrong & ~finite, wrong & finite, use_cpu)


def _kind(tensor: Tensor) -> Tensor:
    if tensor.is_complex():
        # Which part of a complex infinity is NaN depends on the order of operations.
        return torch.where(torch.view_as_real(tensor).isfinite().all(-1), _FINITE, _NAN)
    kinds = torch.where(tensor.isnan(), _NAN, _FINITE)
    kinds = torch.where(tensor == torch.inf, _UP, kinds)
    return torch.where(tensor == -torch.inf, _DOWN, kinds)
