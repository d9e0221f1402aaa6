"""Gets a release's arm64 macOS wheel and takes out what the simulator needs."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import platformdirs

from scanner.sim.prepare.errors import PrepareError

__all__ = ["DYLIBS", "digest", "extract", "find"]

_PLATFORMS = ("macosx_14_0_arm64", "macosx_11_0_arm64")
_LAST_WITHOUT_CP312 = (2, 1)
_RELEASE = re.compile(r"\d+\.\d+\.\d+")
DYLIBS = ("torch/lib/libc10.dylib", "torch/lib/libtorch_cpu.dylib")
"""In order of loading."""
_HEADERS = "torch/include/"
_CHUNK = 1 << 20


def find(release: str, folder: Path | None = None) -> Path:
    """The wheel of a release, downloaded with pip unless the cache has it.

    Raises PrepareError for an unknown release or without a connection.
    """
    if not _RELEASE.fullmatch(release):
        raise PrepareError(
            f"{release!r} is not a release of torch",
            remedy="Give a version such as 2.15.0.",
        )
    folder = folder or platformdirs.user_cache_path("opscan") / "wheels"
    kept = sorted(folder.glob(f"torch-{release}-*arm64.whl"))
    if kept:
        return kept[-1]
    _download(release, folder)
    found = sorted(folder.glob(f"torch-{release}-*arm64.whl"))
    if not found:
        raise PrepareError(
            f"torch {release} has no wheel for arm64 macOS",
            remedy="Choose a release of at least 1.12.",
        )
    return found[-1]


def digest(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            hasher.update(chunk)
    return hasher.hexdigest()


def extract(wheel: Path, target: Path) -> None:
    """Unpacks the libraries and the headers."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
            missing = [name for name in DYLIBS if name not in names]
            if missing:
                raise PrepareError(
                    f"{wheel.name} holds no {missing[0]}: not a wheel for macOS",
                    remedy="Give the arm64 macOS wheel of a release.",
                )
            for name in names:
                if name in DYLIBS or name.startswith(_HEADERS):
                    archive.extract(name, target)
    except zipfile.BadZipFile as error:
        raise PrepareError(
            f"{wheel} is damaged: {error}", remedy="Delete it, then prepare again."
        ) from error


def _download(release: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    major, minor = map(int, release.split(".")[:2])
    python = "3.10" if (major, minor) <= _LAST_WITHOUT_CP312 else "3.12"
    partial = folder / f".partial-{release}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    for platform in _PLATFORMS:
        command += ["--platform", platform]
    command += ["--python-version", python, "-d", str(partial), f"torch=={release}"]
    environment = {**os.environ, "PIP_CONSTRAINT": "", "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(partial, ignore_errors=True)
        reason = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise PrepareError(
            f"torch {release} is not prepared and pip could not download its macOS wheel: "
            + " ".join(reason),
            remedy="Check the connection to the package index and that the release exists.",
        )
    for path in partial.glob("*.whl"):
        path.replace(folder / path.name)
    shutil.rmtree(partial, ignore_errors=True)
