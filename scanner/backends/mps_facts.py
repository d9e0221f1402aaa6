"""Everything that holds for MPS alone: names, messages, allocator figures, variables.

Nothing here imports torch, so all of it is tested on recorded values. The messages are those of
aten/src/ATen/mps/MPSFallback.mm and MPSAllocator.mm as users have posted them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from scanner.backends.interface import Unusable

__all__ = [
    "FALLBACK_VARIABLE",
    "VARIABLES",
    "OutOfMemory",
    "allocator_figures",
    "fallback_is_on",
    "fallback_ops",
    "fallback_variables",
    "is_out_of_memory",
    "is_virtual",
    "metal_name",
    "out_of_memory",
    "tiny_allocation_failed",
    "virtual_device",
]

FALLBACK_VARIABLE = "PYTORCH_ENABLE_MPS_FALLBACK"

VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        FALLBACK_VARIABLE: "ops without an MPS kernel run on the CPU instead of raising",
        "PYTORCH_DEBUG_MPS_ALLOCATOR": "the allocator logs what it does",
        "PYTORCH_MPS_FAST_MATH": "shaders are compiled with fast math, less exact",
        "PYTORCH_MPS_HIGH_WATERMARK_RATIO": "the share of memory past which allocations fail",
        "PYTORCH_MPS_LOG_PROFILE_INFO": "ops are logged as they run, which slows them",
        "PYTORCH_MPS_LOW_WATERMARK_RATIO": "the share of memory past which caches are trimmed",
        "PYTORCH_MPS_METAL_VERSION": "the shader language version is forced",
        "PYTORCH_MPS_PREFER_METAL": "matrix products run as Metal kernels instead of MPSGraph",
        "PYTORCH_MPS_TRACE_SIGNPOSTS": "ops are traced for Instruments, which slows them",
    }
)
"""Variables that change what MPS does; measurements note which were set."""

_FALLBACK = re.compile(
    r"operator '([\w:.]+)' is not currently supported on the MPS backend and will fall back"
)
_MEMORY = re.compile(
    r"MPS backend out of memory \(MPS allocated: (?P<allocated>[\d.]+ \w+)"
    r"(?:, other allocations: (?P<other>[\d.]+ \w+))?(?:, max allowed: (?P<allowed>[\d.]+ \w+))?\)"
    r"\. Tried to allocate (?P<tried>[\d.]+ \w+)"
)
_EXHAUSTED = re.compile(
    r"out of memory|can't allocate memory|not enough memory|cannot allocate memory"
    r"|insufficient memory|bad_alloc|kIOGPUCommandBufferCallbackErrorOutOfMemory",
    re.IGNORECASE,
)
# Printed with binary factors under either spelling.
_UNITS = {"bytes": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}
_TINY = 2**20


class OutOfMemory(msgspec.Struct, frozen=True, kw_only=True):
    """MPS' own account of a failed allocation, in bytes; None where the message has no figure."""

    tried: int
    allocated: int
    other: int | None = None
    allowed: int | None = None


def fallback_variables(fallback: bool | None) -> dict[str, str]:
    """What a worker's environment needs; torch reads it once, at import. None leaves it alone."""
    return {} if fallback is None else {FALLBACK_VARIABLE: "1" if fallback else "0"}


def fallback_is_on(environ: Mapping[str, str]) -> bool:
    """Whether ops without a kernel run on the CPU in a process with this environment."""
    return environ.get(FALLBACK_VARIABLE, "0") not in {"", "0"}


def fallback_ops(text: str) -> tuple[str, ...]:
    """Ops that `text` (a warning, or what was printed to stderr) says ran on the CPU, once each."""
    return tuple(dict.fromkeys(_FALLBACK.findall(text)))


def is_out_of_memory(text: str) -> bool:
    """Whether an error message speaks of memory; of MPS, CUDA, the CPU allocator or Metal."""
    return _EXHAUSTED.search(text) is not None


def out_of_memory(message: str) -> OutOfMemory | None:
    """The figures in MPS' message; None for any other."""
    match = _MEMORY.search(message)
    if match is None:
        return None
    return OutOfMemory(**{key: _bytes(text) for key, text in match.groupdict().items() if text})


def tiny_allocation_failed(message: str) -> bool:
    """Whether memory ran out on an allocation that always fits: what a paravirtual GPU does."""
    figures = out_of_memory(message)
    return figures is not None and figures.tried < _TINY


def is_virtual(name: str) -> bool:
    """Whether a device or processor name is that of a virtual machine.

    `Apple Paravirtual device`, or `Apple M1 (Virtual)` for the processor.
    """
    return "virtual" in name.lower()


def virtual_device(name: str) -> Unusable:
    """Why a virtual machine's GPU is no evidence about a real one."""
    return Unusable(
        reason=f"{name} is the GPU of a virtual machine, which cannot run MPS",
        remedy="Run on a Mac itself: a self-hosted runner, or your own. "
        "Without a device, --device none still judges every op.",
    )


def metal_name(mps_backend: Any, brand: str) -> str:
    """The Metal device's name from `torch.backends.mps`, or the processor's before torch 2.9."""
    get_name = getattr(mps_backend, "get_name", None)
    return str(get_name()) if get_name is not None else brand


def allocator_figures(mps: Any) -> dict[str, int]:
    """Bytes by `torch.mps`: held by tensors, by the driver, and the most that is advisable."""
    names = ("current_allocated_memory", "driver_allocated_memory", "recommended_max_memory")
    return {name: int(getattr(mps, name)()) for name in names if hasattr(mps, name)}


def _bytes(text: str) -> int:
    number, unit = text.split()
    return round(float(number) * _UNITS[unit.replace("iB", "B")])
