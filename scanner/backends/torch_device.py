"""`mps` and `cuda`, through torch's device-generic API: what is tested on one runs on the other."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from scanner.backends import mps_facts
from scanner.backends.interface import DeviceFacts, Unusable
from scanner.backends.overloads import runnable
from scanner.backends.storage import copy_all
from scanner.backends.system import chip_name, os_build

__all__ = ["TorchDevice"]

# Metal's smallest page; the first allocation of this size is what fails on a virtual GPU.
_SMALL_BYTES = 256


class TorchDevice:
    """A GPU as torch sees it; `kind` is torch's device type."""

    def __init__(self, kind: str, index: int | None = None) -> None:
        self._kind = kind
        self._device = torch.device(kind, index or 0)
        self._module: Any = getattr(torch, kind)
        _compute_in_full_precision()

    @property
    def facts(self) -> DeviceFacts:
        """The GPU's name as its driver reports it, and the variables that change what it does."""
        return DeviceFacts(
            backend=self._kind,
            name=self._name(),
            framework=f"torch {torch.__version__}",
            os=os_build(),
            details={name: os.environ[name] for name in self._variables() if name in os.environ},
        )

    def check(self) -> Unusable | None:
        """Allocates, computes a product whose answer is known, and reads it back."""
        if not self._module.is_available():
            return Unusable(
                reason=f"torch {torch.__version__} finds no {self._kind} device here",
                remedy="Use --device none, or a torch and machine that have one.",
            )
        for name in (self._name(), chip_name()):
            if self._kind == "mps" and mps_facts.is_virtual(name):
                return mps_facts.virtual_device(name)
        try:
            return self._prove()
        except RuntimeError as error:
            return self._failed(str(error))

    def upload(self, tensor: Any) -> Any:
        """See `Device.upload`."""
        return copy_all([tensor], self._device)[0]

    def upload_all(self, tensors: list[Any]) -> list[Any]:
        """See `Device.upload_all`."""
        return copy_all(tensors, self._device)

    def download(self, tensor: Any) -> Any:
        """See `Device.download`; waits for the device."""
        return tensor.detach().to("cpu")

    def call(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the overload and waits, so that its own asynchronous errors are raised here."""
        result = self.submit(op, args, kwargs)
        self.synchronize()
        return result

    def submit(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the overload."""
        return runnable(op, self._kind)(*args, **kwargs)

    def synchronize(self) -> None:
        """Waits for everything submitted; raises what it died of."""
        # Named, because a world in which the user's code runs says that the current one is `mps`.
        self._module.synchronize(*([] if self._kind == "mps" else [self._device]))

    def timer(self) -> Callable[[Callable[[], Any]], float]:
        """Times by device events, or by the synchronised clock where those do not tell time."""
        return self._by_events if self._events_tell_time() else self._by_clock

    def memory(self) -> Mapping[str, int]:
        """The allocator's figures."""
        if self._kind == "mps":
            return mps_facts.allocator_figures(self._module)
        names = ("memory_allocated", "memory_reserved")
        return {name: int(getattr(self._module, name)()) for name in names}

    def release(self) -> None:
        """Empties the allocator's cache."""
        self._module.empty_cache()

    def _name(self) -> str:
        if self._kind == "mps":
            return mps_facts.metal_name(torch.backends.mps, chip_name())
        return str(self._module.get_device_name(self._device))

    def _variables(self) -> Mapping[str, str]:
        return mps_facts.VARIABLES if self._kind == "mps" else {}

    def _prove(self) -> Unusable | None:
        torch.empty(_SMALL_BYTES, dtype=torch.uint8, device=self._device)
        left = torch.arange(64, dtype=torch.float32).reshape(8, 8)
        # A permutation matrix reverses the columns exactly, in any precision.
        right = torch.eye(8).flip(1)
        product = self.download(self.upload(left) @ self.upload(right))
        if torch.equal(product, left.flip(1)):
            return None
        return Unusable(
            reason=f"{self._name()} multiplies an 8×8 permutation wrongly",
            remedy="Restart the machine; if it stays so, the driver or the GPU is faulty.",
        )

    def _failed(self, message: str) -> Unusable:
        if self._kind == "mps" and mps_facts.tiny_allocation_failed(message):
            return mps_facts.virtual_device(self._name())
        return Unusable(
            reason=f"{self._name()} cannot multiply two 8×8 matrices: {message.splitlines()[0]}",
            remedy="Free its memory, or restart the machine.",
        )

    def _events_tell_time(self) -> bool:
        event = getattr(self._module, "Event", None)
        if event is None:
            return False
        probe = torch.ones(256, 256, device=self._device)
        try:
            return 0 < self._by_events(lambda: probe @ probe) < 60
        except RuntimeError:
            return False

    def _by_events(self, run: Callable[[], Any]) -> float:
        start, end = (self._module.Event(enable_timing=True) for _ in range(2))
        self.synchronize()
        start.record()
        run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3

    def _by_clock(self, run: Callable[[], Any]) -> float:
        self.synchronize()
        start = time.perf_counter()
        run()
        self.synchronize()
        return time.perf_counter() - start


def _compute_in_full_precision() -> None:
    """No TF32: a device is judged by what its kernels do in the dtype that was asked for."""
    # The setters that every supported release has; they reach the newer ones' settings too.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
