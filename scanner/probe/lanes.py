"""A second value for every tensor of a step that runs on the CPU.

While the user's step runs, each of its ops is run again on a *lane*: on a device, or in double
precision. A lane's tensors lie over storages of its own, one for each storage of the step, so that
views, aliases and in-place writes are there what they are in the step, and each op works on what
the lane itself has computed before. What a lane has not seen yet is copied from the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_map

from scanner.backends.interface import Device
from scanner.backends.overloads import runnable
from scanner.backends.storage import lay_over, whole
from scanner.capture.autograd import autograd_seen
from scanner.probe.reference import WIDE, default_dtype, quiet

__all__ = ["DeviceLane", "Lane", "RaisedLane"]

_SWEEP = 64


@dataclass
class _Held:
    """What a lane has for one storage of the step."""

    alive: Any
    """Weak reference to the step's storage, whose address is not used again while it exists."""
    storage: torch.UntypedStorage
    ratio: int
    """Bytes of an element ÷ bytes of the step's."""
    private: Tensor | None = None
    """A result that only this lane's own ops can read, in whatever shape it came."""


class Lane:
    """See the module. `keeps` says which of the step's tensors stay on the host."""

    where = torch.device("cpu")

    def __init__(self, keeps: Callable[[Tensor], bool]) -> None:
        self._keeps = keeps
        self._held: dict[int, _Held] = {}
        self._since = 0

    def dtype(self, dtype: torch.dtype) -> torch.dtype:
        """What stands for a dtype of the step here."""
        return dtype

    def run(self, op: str, args: Any, kwargs: Any) -> Any:
        """Runs the op on this lane's tensors; raises what it raises."""
        with ExitStack() as stack:
            for context in (torch.no_grad(), quiet(), autograd_seen()):
                stack.enter_context(context)
            return self._run(op, args, kwargs)

    def take(self, tensor: Tensor) -> Tensor:
        """This lane's value of a tensor of the step."""
        if tensor.layout is not torch.strided or self._keeps(tensor):
            return self._once(tensor)
        held = self._held.get(tensor.untyped_storage()._cdata)
        if held is not None and held.private is not None:
            return held.private
        dtype = self.dtype(tensor.dtype)
        ratio = dtype.itemsize // tensor.dtype.itemsize
        size = tensor.untyped_storage().nbytes() * ratio
        if held is None or held.ratio != ratio or held.storage.nbytes() < size:
            held = self._hold(tensor, self._copied(tensor), ratio)
        return lay_over(tensor, held.storage, dtype)

    def arguments(self, tree: Any) -> Any:
        """The arguments of a call with this lane's tensors, dtypes and device."""
        return tree_map(self._argument, tree)

    def adopt(self, real: Tensor, own: Tensor | None, *, private: bool = False) -> None:
        """Makes `own` the value of a new tensor of the step; None takes the step's value.

        A tensor that lies over a storage known here has been written or viewed in place.
        """
        if real.layout is not torch.strided or self._keeps(real):
            return
        key = real.untyped_storage()._cdata
        if own is None:
            self._held.pop(key, None)
        elif private:
            self._hold(real, own.untyped_storage(), 1).private = own
        elif key not in self._held:
            self._hold(real, self._like(real, own), own.element_size() // real.element_size())
        self._sweep()

    def forget(self, tensors: Iterable[Tensor]) -> None:
        """Takes the step's values for these, when they are next read."""
        for tensor in tensors:
            if tensor.layout is torch.strided:
                self._held.pop(tensor.untyped_storage()._cdata, None)

    def _run(self, op: str, args: Any, kwargs: Any) -> Any:
        return runnable(op, "cpu")(*args, **kwargs)

    def _once(self, tensor: Tensor) -> Tensor:
        return tensor.detach()

    def _copied(self, tensor: Tensor) -> torch.UntypedStorage:
        raise NotImplementedError

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self.take(value)
        if isinstance(value, torch.dtype):
            return self.dtype(value)
        return self.where if isinstance(value, torch.device) else value

    def _hold(self, tensor: Tensor, storage: torch.UntypedStorage, ratio: int) -> _Held:
        theirs = tensor.untyped_storage()
        held = _Held(StorageWeakRef(theirs), storage, ratio)
        self._held[theirs._cdata] = held
        return held

    def _like(self, real: Tensor, own: Tensor) -> torch.UntypedStorage:
        """The storage of a result, laid out as the step's."""
        same = own.stride() == real.stride() and own.storage_offset() == real.storage_offset()
        lazy = own.is_conj() != real.is_conj() or own.is_neg() != real.is_neg()
        ratio = own.element_size() // real.element_size()
        size = real.untyped_storage().nbytes() * ratio
        if same and not lazy and own.untyped_storage().nbytes() >= size:
            return own.untyped_storage()
        storage = torch.empty(size, dtype=torch.uint8, device=own.device).untyped_storage()
        lay_over(real, storage, own.dtype).copy_(own)
        return storage

    def _sweep(self) -> None:
        """Lets go of what the step has let go of."""
        self._since += 1
        if self._since < _SWEEP:
            return
        self._since = 0
        for key in [key for key, held in self._held.items() if held.alive.expired()]:
            del self._held[key]


class RaisedLane(Lane):
    """The step in double precision, on the CPU: how far off is the CPU itself?"""

    def dtype(self, dtype: torch.dtype) -> torch.dtype:
        """Twice or four times as wide, for floating and complex ones."""
        return WIDE.get(dtype, dtype)

    def _run(self, op: str, args: Any, kwargs: Any) -> Any:
        with default_dtype(raised=True):
            return super()._run(op, args, kwargs)

    def _once(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self.dtype(tensor.dtype), copy=True)

    def _copied(self, tensor: Tensor) -> torch.UntypedStorage:
        line = whole(tensor, tensor.dtype)
        return line.to(self.dtype(tensor.dtype), copy=True).untyped_storage()


class DeviceLane(Lane):
    """The step on a device."""

    def __init__(self, device: Device, keeps: Callable[[Tensor], bool]) -> None:
        super().__init__(keeps)
        self._device = device
        # Made while the user's world denies that any device but MPS is there.
        with torch._C.DisableTorchFunction():
            self.where = device.upload(torch.zeros(())).device

    def download(self, tree: Any) -> Any:
        """Arguments of a call, on the CPU."""
        return tree_map(self._brought_back, tree)

    def _brought_back(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            got = self._device.download(value)
            return got.clone() if got.data_ptr() == value.data_ptr() else got
        return torch.device("cpu") if isinstance(value, torch.device) else value

    def _run(self, op: str, args: Any, kwargs: Mapping[str, Any]) -> Any:
        return self._device.call(op, args, dict(kwargs))

    def _once(self, tensor: Tensor) -> Tensor:
        """Tensors that the user keeps on the host are the same for every lane."""
        if self._keeps(tensor):
            return tensor.detach()
        moved: Tensor = self._device.upload(tensor)
        return moved

    def _copied(self, tensor: Tensor) -> torch.UntypedStorage:
        storage: torch.UntypedStorage = self._device.upload(
            whole(tensor, torch.uint8)
        ).untyped_storage()
        return storage
