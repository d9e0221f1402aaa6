"""Tensors that stay on the host, as arguments of a simulated call: an op may write to them."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import torch

from scanner.sim.call import SimTensor
from scanner.sim.values import from_torch

if TYPE_CHECKING:
    from scanner.sim.session import Session

__all__ = ["HostTensors"]


class HostTensors:
    """The host's tensors of one call, inside the process and outside."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._held: dict[int, tuple[torch.Tensor, SimTensor]] = {}
        """The first tensor over each storage, which brings it into the process."""

    def take(self, tensor: torch.Tensor) -> SimTensor:
        """The tensor inside the process, with its storage shared as outside. Fault as `upload`."""
        key = tensor.untyped_storage()._cdata
        _, first = self._held.get(key, (None, None))
        held = self._session.upload(from_torch(tensor, "cpu"), alias=first)
        self._held.setdefault(key, (tensor, held))
        return held

    def write_back(self) -> None:
        """Copies out what the call wrote to them."""
        for tensor, held in self._held.values():
            content = self._session.download(held).storage
            if content != from_torch(tensor).storage:
                ctypes.memmove(tensor.untyped_storage().data_ptr(), content, len(content))
