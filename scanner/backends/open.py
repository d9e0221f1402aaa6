"""Chooses a device by its spelling: `mps`, `cuda`, `cuda:1`, `cpu`, `metal-sim:2.15.0`,
`drill:abort=aten::mm`.

The spelling is checked without torch, so that a typo costs a user no process; the device itself
is opened where it is used, in a worker.
"""

from __future__ import annotations

import re

from scanner.backends.drill_spec import parse_drill
from scanner.backends.interface import Device
from scanner.backends.sim_spec import is_simulator, sim_target
from scanner.errors import UsageError

__all__ = ["check_device_spec", "open_device", "reads_fallback_variable"]

_GPU = re.compile(r"(mps|cuda)(?::(\d+))?")
_KNOWN = "mps, cuda, cpu, metal-sim:RELEASE and drill:SPEC"


def check_device_spec(spec: str) -> None:
    """Raises `UsageError` with the remedy when no device is spelled like this."""
    if spec.startswith("drill:"):
        parse_drill(spec.removeprefix("drill:"))
    elif is_simulator(spec):
        sim_target(spec)
    elif spec != "cpu" and not _GPU.fullmatch(spec):
        raise UsageError(f"there is no device {spec!r}", remedy=f"Devices are {_KNOWN}.")


def reads_fallback_variable(spec: str) -> bool:
    """Whether what the device does with ops that it lacks depends on an environment variable."""
    return spec.startswith(("mps", "drill:"))


def open_device(spec: str) -> Device:
    """The device; whether it works is for `Device.check` to say. Imports torch.

    Raises `UsageError` as `check_device_spec`, and for a device that this installation lacks.
    """
    check_device_spec(spec)
    if match := _GPU.fullmatch(spec):
        from scanner.backends.torch_device import TorchDevice

        return TorchDevice(match[1], int(match[2]) if match[2] else None)
    if spec == "cpu":
        from scanner.backends.cpu import CpuDevice

        return CpuDevice()
    if is_simulator(spec):
        from scanner.backends.metal_sim import open_simulator

        return open_simulator(spec)
    from scanner.backends.drill import DrillDevice

    return DrillDevice(spec.removeprefix("drill:"))
