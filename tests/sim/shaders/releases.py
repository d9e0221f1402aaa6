"""Published releases: their Metal libraries, taken from wheels that are already here."""

from __future__ import annotations

import zipfile
from pathlib import Path

import lief
import pytest

WHEELS = Path.home() / ".cache" / "opscan" / "wheels"
SECTIONS = (
    ("2.9.1", "metal_basic"),
    ("2.11.0", "metal_basic"),
    ("2.13.0", "metal_basic"),
    ("2.13.0", "metal_40"),
    ("2.15.0", "metal_basic"),
    ("2.15.0", "metal_40"),
)


def extract(release: str, section: str, folder: Path) -> Path:
    """The library section of a release as a file; skips the test where there is no wheel."""
    path = folder / f"{release}-{section}"
    if path.exists():
        return path
    wheels = sorted(WHEELS.glob(f"torch-{release}-*macosx*arm64.whl"))
    if not wheels:
        pytest.skip(f"no wheel of torch {release} in {WHEELS}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        image = lief.MachO.parse(wheel.read("torch/lib/libtorch_cpu.dylib"))
    assert image is not None
    for found in image.at(0).sections:
        if found.name.startswith("metal"):
            (folder / f"{release}-{found.name}").write_bytes(bytes(found.content))
    return path
