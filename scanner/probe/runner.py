"""What a worker runs a configuration with."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from scanner.backends.interface import DeviceFacts, Unusable
from scanner.backends.sim_spec import is_simulator
from scanner.records import OpCall, Status

__all__ = ["Ran", "Runner", "torch_runner"]


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration's verdict and how it came about."""

    status: Status
    reason: str
    detail: dict[str, Any] = {}
    """Encodable as JSON."""
    fallbacks: tuple[str, ...] = ()
    """Ops known to have run on the CPU, whether or not they said so."""


class Runner(Protocol):
    """One framework on one device, made by a factory `(device spec, options) -> Runner`.

    It may do anything to its process: whatever it raises, or dies of, is accounted for.
    """

    @property
    def facts(self) -> DeviceFacts:
        """The device's identity."""

    def check(self) -> Unusable | None:
        """Proves that the device works, now."""

    def run(self, call: OpCall) -> Ran:
        """Runs one configuration and judges it."""

    def fallback_cost(self, call: OpCall) -> dict[str, Any]:
        """What it costs that an op of the configuration ran on the CPU, encodable as JSON.

        A `FallbackCost`, or an empty object when it cannot be measured.
        """

    def settle(self) -> None:
        """Waits for everything submitted; raises what it died of."""

    def held(self) -> int:
        """Bytes that the device holds for this process."""

    def trim(self) -> None:
        """Gives back what the device holds without need."""


def torch_runner(device: str, options: dict[str, Any]) -> Runner:
    """The probe of torch ops; imports torch."""
    if is_simulator(device):
        from scanner.probe.sim_runner import SimRunner

        return SimRunner(device, options)
    from scanner.probe.torch_runner import TorchRunner

    return TorchRunner(device, options)
