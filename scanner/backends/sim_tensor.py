"""A tensor of the simulator, dressed as a torch tensor so that the probe can hold it."""

from __future__ import annotations

from typing import Any

import torch

from scanner.backends.interface import Inconclusive
from scanner.sim.call import SimTensor

__all__ = ["SimulatedTensor", "dressed"]


class SimulatedTensor(torch.Tensor):
    """Has a dtype, a layout and a device, and no data: only the simulator computes with it.

    Its shape and strides are those of `held`, which an op may have changed in place.
    """

    held: SimTensor

    def __repr__(self) -> str:  # type: ignore[override]
        return f"SimulatedTensor({self.held})"

    @property
    def shape(self) -> torch.Size:  # type: ignore[override]
        """As the release has it now."""
        return torch.Size(self.held.shape)

    def size(self, dim: int | None = None) -> Any:
        """As the release has it now."""
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """As the release has it now, in elements."""
        return self.held.stride if dim is None else self.held.stride[dim]

    def storage_offset(self) -> int:
        """As the release has it now, in elements."""
        return self.held.offset

    def numel(self) -> int:
        """Number of elements."""
        return self.shape.numel()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """No op of the installed torch may touch it: that would not be the release's answer."""
        del cls, types, args, kwargs
        raise Inconclusive(f"{func} of the installed torch was called on a simulated tensor")


def dressed(held: SimTensor) -> SimulatedTensor:
    """A torch tensor that stands for one of the simulator's.

    Raises `Inconclusive` for what the installed torch has no word for.
    """
    dtype = getattr(torch, held.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise Inconclusive(f"a result has dtype {held.dtype}, which the installed torch lacks")
    if held.shape and not held.stride:
        raise Inconclusive("a result is sparse, and the simulator reads dense ones only")
    made: SimulatedTensor = torch.Tensor._make_wrapper_subclass(
        SimulatedTensor,
        held.shape,
        strides=held.stride,
        storage_offset=held.offset,
        dtype=dtype,
        device=torch.device(held.device),
    )
    made.held = held
    return made
