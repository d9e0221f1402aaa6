"""The reference as a device: judged against itself, it must find nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from scanner.backends.interface import DeviceFacts, Unusable
from scanner.backends.overloads import runnable
from scanner.backends.storage import copy_all
from scanner.backends.system import chip_name, os_build

__all__ = ["CpuDevice"]

_CPU = torch.device("cpu")


class CpuDevice:
    """The host's processor; uploads are copies, so an op cannot clobber the reference's inputs."""

    @property
    def facts(self) -> DeviceFacts:
        """The processor's name as the system reports it."""
        return DeviceFacts(
            backend="cpu", name=chip_name(), framework=f"torch {torch.__version__}", os=os_build()
        )

    def check(self) -> Unusable | None:
        """Always usable: torch would not have been imported otherwise."""
        return None

    def upload(self, tensor: Any) -> Any:
        """A copy with storage of its own, see `Device.upload`."""
        return copy_all([tensor], _CPU)[0]

    def upload_all(self, tensors: list[Any]) -> list[Any]:
        """Copies that alias each other as the originals do."""
        return copy_all(tensors, _CPU)

    def download(self, tensor: Any) -> Any:
        """A copy, so that a later in-place op does not change a result."""
        return tensor.detach().clone()

    def call(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the overload."""
        return self.submit(op, args, kwargs)

    def submit(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the overload; the CPU is always ready when it returns."""
        return runnable(op, "cpu")(*args, **kwargs)

    def synchronize(self) -> None:
        """Nothing is ever pending."""

    def timer(self) -> Callable[[Callable[[], Any]], float]:
        """Times by the clock."""
        return _clocked

    def memory(self) -> Mapping[str, int]:
        """The CPU allocator keeps no account."""
        return {}

    def release(self) -> None:
        """Nothing is cached."""


def _clocked(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
