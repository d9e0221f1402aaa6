"""Which storages of a step are on the host, and which on the target."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor

__all__ = ["Place", "Placement"]

Place = Literal["target", "host"]


class Placement:
    """Which storages the user deliberately keeps on the host; everything else is on the target.

    Storages are told apart by their address, which a weak reference keeps from being reused.
    """

    def __init__(self, base: torch.device) -> None:
        self._base = base
        self._host: dict[int, Any] = {}
        self._kept: dict[int, Any] = {}
        self.default: Place = "target"
        """Where a tensor is created that names no device.

        A model's file builds for the target; an optimizer keeps its counters on the host.
        """
        self.stepping = False
        """Whether the step has begun: what is then created on the host is small and has values."""
        self.creating: Place | None = None
        """Where the call in progress puts new storages; None when that follows from its inputs."""
        self.chosen = False
        """Whether the user chose the default device: then a tensor that names none is there."""

    def is_host(self, tensor: Tensor) -> bool:
        """Whether the tensor's storage is on the host."""
        with torch._C.DisableTorchFunction():
            if tensor.device.type != self._base.type:
                return True
            if not (self._host or self._kept):
                return False
            key = _storage(tensor)
            return key in self._host or key in self._kept

    def mark_host(self, tensor: Tensor, *, keep: bool = False) -> None:
        """Records that the tensor's storage is on the host; with `keep`, past `clear` as well."""
        key = _storage(tensor)
        if key:
            (self._kept if keep else self._host)[key] = (
                torch.multiprocessing.reductions.StorageWeakRef(tensor.untyped_storage())
            )

    def forget(self, tensors: Iterable[Tensor]) -> None:
        """These count as being on the target, wherever they were put.

        A script that finds no CUDA device puts its model on the CPU; what MPS would do with it is
        what the user wants to know.
        """
        for tensor in tensors:
            self._host.pop(_storage(tensor), None)


def _storage(tensor: Tensor) -> int:
    if tensor.layout != torch.strided:
        return 0
    return int(tensor.untyped_storage()._cdata)
