"""What a probe needs of a device. One implementation a file; `open_device` chooses by name.

A device is used inside a worker process only, so an implementation may crash or hang: the
supervisor survives that. Implementations use torch's device-generic API, so that the path that is
tested on CUDA is the one that runs on MPS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

__all__ = ["Device", "DeviceFacts", "Inconclusive", "Unusable"]


class DeviceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What identifies a device in stored measurements."""

    backend: str
    """`mps`, `cuda`, `cpu`, `drill`, `metal-sim`."""
    name: str
    """As the driver reports it: `Apple M3 Pro`, `NVIDIA H200`."""
    framework: str
    """`torch 2.13.0`."""
    os: str
    """macOS build or platform string."""
    details: Mapping[str, str] = {}


class Unusable(msgspec.Struct, frozen=True, kw_only=True):
    """Why a device that is named cannot be used; never thousands of op failures."""

    reason: str
    remedy: str


class Inconclusive(Exception):  # noqa: N818  (an outcome, not an error)
    """A device cannot tell what would happen: no verdict on the op, for the reason given."""


class Device(Protocol):
    """One device, as the probe uses it. Tensors passed in and out are torch tensors."""

    @property
    def facts(self) -> DeviceFacts:
        """Identity for reports and the store."""

    def check(self) -> Unusable | None:
        """Proves with small allocations and ops that the device works, or says why not."""

    def upload(self, tensor: Any) -> Any:
        """A device tensor with the same dtype, shape, strides, storage offset and values.

        The whole underlying storage is copied, so overlapping and expanded views stay what they
        are. Tensors that share storage are uploaded together with `upload_all`.
        """

    def upload_all(self, tensors: list[Any]) -> list[Any]:
        """Uploads several tensors; those that alias on the host alias on the device."""

    def download(self, tensor: Any) -> Any:
        """A CPU tensor with the same dtype, shape and strides where they are dense."""

    def call(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs `aten::…` on device tensors; returns when the result is ready.

        Raises what the framework raises, and `Inconclusive` where an imitation has no answer.
        """

    def submit(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """As `call`, but may return before the result is ready: what a training step does."""

    def synchronize(self) -> None:
        """Waits for everything submitted."""

    def timer(self) -> Callable[[Callable[[], Any]], float]:
        """A function that runs its argument once and returns elapsed seconds on the device."""

    def memory(self) -> Mapping[str, int]:
        """Bytes that the device holds for this process, by the allocator's own names.

        Empty for a device that does not account for its memory.
        """

    def release(self) -> None:
        """Gives memory that is cached but unused back to the system."""
