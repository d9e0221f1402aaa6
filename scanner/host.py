"""What machine this is, as far as the default target needs to know; nothing heavy is imported."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping

import msgspec

from opdb import installed
from scanner.backends.mps_facts import fallback_is_on
from scanner.records import Target

__all__ = ["Host", "this_host"]

_GIB = 1 << 30


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """The machine that scans."""

    system: str
    """`Darwin`, `Linux`."""
    machine: str
    """`arm64`, `x86_64`."""
    python: str
    torch: str | None = None
    """Version of the installed torch, local suffix included."""
    macos: str | None = None
    chip: str | None = None
    """`M3 Pro`."""
    ram: int | None = None
    """GiB."""
    fallback: bool = False
    """Whether PYTORCH_ENABLE_MPS_FALLBACK is set to something but 0."""

    @property
    def is_apple_silicon(self) -> bool:
        """Whether MPS can exist here."""
        return self.system == "Darwin" and self.machine == "arm64"

    def target(self, release: str) -> Target:
        """This machine as a target that runs `release` of torch."""
        return Target(
            framework="torch",
            version=release,
            macos=self.macos,
            chip=self.chip,
            ram=self.ram,
            fallback=self.fallback,
        )


def this_host(environ: Mapping[str, str]) -> Host:
    """Look around, without importing torch."""
    mac = sys.platform == "darwin"
    return Host(
        system=platform.system(),
        machine=platform.machine(),
        python=platform.python_version(),
        torch=installed.version(),
        macos=platform.mac_ver()[0] or None,
        chip=_chip() if mac else None,
        ram=_ram() if mac else None,
        fallback=fallback_is_on(environ),
    )


def _chip() -> str | None:
    """`sysctl machdep.cpu.brand_string` says `Apple M3 Pro`."""
    try:
        brand = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"\bM\d+(?: (?:Pro|Max|Ultra))?", brand)
    return match[0] if match else None


def _ram() -> int | None:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None
    return round(total / _GIB)
