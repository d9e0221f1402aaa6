"""Names of the machine that stored measurements are keyed by."""

from __future__ import annotations

import platform
import re
import subprocess
from functools import lru_cache
from pathlib import Path

__all__ = ["chip_name", "cpu_model", "os_build", "sysctl"]


@lru_cache(maxsize=1)
def os_build() -> str:
    """`macOS 15.5 (24F74)`: the build too, since Apple changes kernels between two of one version.

    On another system the platform string.
    """
    if platform.system() != "Darwin":
        return platform.platform()
    version, build = platform.mac_ver()[0], sysctl("kern.osversion")
    return f"macOS {version} ({build})" if build else f"macOS {version}"


@lru_cache(maxsize=1)
def chip_name() -> str:
    """`Apple M3 Pro`, or the processor's model name on another system."""
    if platform.system() == "Darwin":
        return sysctl("machdep.cpu.brand_string") or platform.machine()
    try:
        return cpu_model(Path("/proc/cpuinfo").read_text(encoding="utf-8")) or platform.machine()
    except OSError:
        return platform.machine()


def cpu_model(cpuinfo: str) -> str:
    """The first `model name` of Linux' /proc/cpuinfo; empty when there is none (most Arm)."""
    match = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return match[1].strip() if match else ""


def sysctl(name: str) -> str:
    """One value of macOS' sysctl; empty when it cannot be read."""
    try:
        return subprocess.run(
            ["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
