"""Gets a release's arm64 macOS wheel and takes out what the simulator needs."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

import platformdirs

from scanner.sim.prepare.errors import PrepareError

__all__ = ["DYLIBS", "digest", "extract", "find", "silent"]

_PLATFORMS = ("macosx_14_0_arm64", "macosx_11_0_arm64")
_LAST_WITHOUT_CP312 = (2, 1)
_RELEASE = re.compile(r"\d+\.\d+\.\d+")
DYLIBS = ("torch/lib/libc10.dylib", "torch/lib/libtorch_cpu.dylib")
"""In order of loading."""
_HEADERS = "torch/include/"
_CHUNK = 1 << 20
_ARRIVED = re.compile(r"Progress (\d+) of (\d+)")
_RAW_PROGRESS = (24, 1)
"""pip from which on `--progress-bar raw` prints the lines of `_ARRIVED`."""
_RESUMES = (25, 1)


def silent(*_: object) -> None:
    """Tells nobody."""


def find(
    release: str,
    folder: Path | None = None,
    progress: Callable[[str], None] = silent,
    downloading: Callable[[int, int], None] = silent,
) -> Path:
    """The wheel of a release, downloaded with pip unless the cache has it.

    pip compares it with the hash that the index states, and resumes a connection that breaks.
    `downloading` is told bytes that have arrived and all of them.

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
    progress(f"downloading torch {release}")
    _download(release, folder, downloading)
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


def _download(release: str, folder: Path, downloading: Callable[[int, int], None]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    major, minor = map(int, release.split(".")[:2])
    python = "3.10" if (major, minor) <= _LAST_WITHOUT_CP312 else "3.12"
    partial = folder / f".partial-{release}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    for platform in _PLATFORMS:
        command += ["--platform", platform]
    command += _pip_options()
    command += ["--python-version", python, "-d", str(partial), f"torch=={release}"]
    environment = {**os.environ, "PIP_CONSTRAINT": "", "PIP_CONFIG_FILE": os.devnull}
    code, said = _followed(command, environment, downloading)
    if code:
        shutil.rmtree(partial, ignore_errors=True)
        reason = said.strip().splitlines()[-1:]
        raise PrepareError(
            f"torch {release} is not prepared and pip could not download its macOS wheel: "
            + " ".join(reason),
            remedy="Check the connection to the package index and that the release exists.",
        )
    for path in partial.glob("*.whl"):
        path.replace(folder / path.name)
    shutil.rmtree(partial, ignore_errors=True)


def _pip_options() -> list[str]:
    """What the installed pip can do of telling its progress and resuming."""
    try:
        major, minor = (int(part) for part in metadata.version("pip").split(".")[:2])
    except (metadata.PackageNotFoundError, ValueError):
        return []
    options = ["--progress-bar", "raw"] if (major, minor) >= _RAW_PROGRESS else []
    return [*options, "--resume-retries", "5"] if (major, minor) >= _RESUMES else options


def _followed(
    command: Sequence[str], environment: Mapping[str, str], downloading: Callable[[int, int], None]
) -> tuple[int, str]:
    """Exit code and what was said; progress is passed on."""
    said: list[str] = []
    with subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if match := _ARRIVED.match(line):
                downloading(int(match[1]), int(match[2]))
            else:
                said.append(line)
    return child.returncode, "".join(said)
