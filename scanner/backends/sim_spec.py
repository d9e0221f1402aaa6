"""The simulator's spelling: `metal-sim:torch==2.15.0,macos=26.2,chip=M3,ram=16`.

After the colon stands a target as for `--target`; `metal-sim:2.15.0` is short for the release
alone. Nothing here imports torch or the emulator.
"""

from __future__ import annotations

import re

from scanner.errors import UsageError
from scanner.judge.target import parse_target
from scanner.records import Target

__all__ = [
    "DEFAULT_CHIP",
    "DEFAULT_MACOS",
    "NAME",
    "is_simulator",
    "sim_label",
    "sim_spec",
    "sim_target",
]

NAME = "metal-sim"
DEFAULT_MACOS = "15.5"
DEFAULT_CHIP = "M2"
_RELEASE = re.compile(r"\d+\.\d+\.\d+")


def is_simulator(spec: str) -> bool:
    """Whether a device spec names the simulator."""
    return spec == NAME or spec.startswith(f"{NAME}:")


def sim_spec(target: Target) -> str:
    """The device spec that imitates a target."""
    return f"{NAME}:{target.id}"


def sim_label(spec: str) -> str:
    """What tells the files about one imitated target from those about another."""
    return re.sub(r"[^\w.]+", "-", sim_target(spec).id)


def sim_target(spec: str) -> Target:
    """What a device spec of the simulator imitates; raises `UsageError` with the remedy."""
    text = spec.removeprefix(NAME).removeprefix(":").strip()
    if not text:
        raise UsageError(
            "metal-sim imitates a release of torch, and none is named",
            remedy="Name it: --device metal-sim:2.15.0, or --target torch==2.15.0 for a scan.",
        )
    return parse_target(f"torch=={text}" if text[0].isdigit() else text, _release)


def _release(version: str) -> str:
    if not _RELEASE.fullmatch(version):
        raise UsageError(
            f"{version!r} is not a release of torch", remedy="Write it whole, as 2.15.0."
        )
    return version
