"""Gets a release's arm64 macOS wheel from the package index, once."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import platformdirs

from scanner.errors import DataError

__all__ = ["cache", "digest", "wheel"]

_PLATFORMS = ("macosx_14_0_arm64", "macosx_11_0_arm64")
_LAST_WITHOUT_CP312 = (2, 1)


def cache() -> Path:
    """Where wheels are kept; 2 GB for all releases."""
    return platformdirs.user_cache_path("opscan") / "wheels"


def digest(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        hasher = hashlib.sha256()
        while chunk := file.read(1 << 20):
            hasher.update(chunk)
    return hasher.hexdigest()


def wheel(release: str, folder: Path, recorded: tuple[str, str] | None) -> tuple[Path, str]:
    """Path and hash of a release's wheel, downloaded unless the folder has it.

    `recorded` is the file name and hash of the wheel that the data were made from; another file is
    an error, because the facts of a release must not change under its name.
    """
    if recorded:
        kept = folder / recorded[0]
        if kept.exists() and digest(kept) == recorded[1]:
            return kept, recorded[1]
    path = _download(release, folder, _python(release, recorded))
    found = digest(path)
    if recorded and (path.name, found) != recorded:
        raise DataError(
            f"torch {release}: the index serves {path.name} with hash {found}, and the data were "
            f"made from {recorded[0]} with hash {recorded[1]}",
            remedy=f"Check the release, then remove its line from releases.tsv and delete {path}.",
        )
    return path, found


def _python(release: str, recorded: tuple[str, str] | None) -> str:
    """Python version whose wheel is read: every release has one for 3.10 or 3.12."""
    if recorded:
        tag = recorded[0].removesuffix(".whl").split("-")[-3]
        return f"{tag[2]}.{tag[3:]}"
    major, minor = map(int, release.split(".")[:2])
    return "3.10" if (major, minor) <= _LAST_WITHOUT_CP312 else "3.12"


def _download(release: str, folder: Path, python: str) -> Path:
    """Downloads into a folder of its own first: a broken download leaves nothing behind."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="download-", dir=folder) as fresh:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        for platform in _PLATFORMS:
            command += ["--platform", platform]
        command += ["--python-version", python, "-d", fresh, f"torch=={release}"]
        clean = {**os.environ, "PIP_CONSTRAINT": "", "PIP_CONFIG_FILE": os.devnull}
        done = subprocess.run(command, env=clean, capture_output=True, text=True, check=False)
        wheels = list(Path(fresh).glob("*.whl"))
        if done.returncode or len(wheels) != 1:
            reason = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise DataError(
                f"torch {release}: pip could not download the macOS wheel: {' '.join(reason)}",
                remedy="Check the connection to the package index and that the release exists.",
            )
        return wheels[0].replace(folder / wheels[0].name)
