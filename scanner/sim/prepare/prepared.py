"""A prepared release on disk."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec
import platformdirs

from scanner.sim.libraries import BundledLibrary, Loaded
from scanner.sim.prepare import wheel
from scanner.sim.prepare.errors import PrepareError

__all__ = [
    "FORMAT",
    "Library",
    "Manifest",
    "Part",
    "Prepared",
    "cache_folder",
    "load",
    "prepared_releases",
]

FORMAT = 1
"""Grows when the meaning of the files changes; others are prepared again."""
MANIFEST = "manifest.json"
_STAMP = "verified.json"
"""Size and time of every file when its content was last found to be right."""


class Part(msgspec.Struct, frozen=True):
    """A file with memory content, and where it belongs."""

    name: str
    """Region: a library's file name, `data` or `heap`."""
    file: str
    start: int
    size: int
    """Of the region; the file may be shorter."""
    nbytes: int
    """Of the file."""
    sha256: str


class Library(msgspec.Struct, frozen=True):
    """A compiled Metal library of the release."""

    name: str
    """Section: `metal_basic`."""
    start: int
    """Where emulated code finds it."""
    size: int
    file: str
    kernels: tuple[str, ...]
    sha256: str = ""
    """Of the file; empty in manifests that were written before it was kept."""


class Manifest(msgspec.Struct, frozen=True):
    """What a snapshot holds."""

    format: int
    release: str
    wheel: str
    wheel_sha256: str
    native: str
    """Digest of the sources that were compiled for it."""
    parts: tuple[Part, ...]
    libraries: tuple[Loaded, ...]
    bundled: tuple[Library, ...]
    functions: dict[str, int]
    """Import name → stub."""
    data: dict[str, int]
    """Imported data → address."""
    data_used: int
    symbols: dict[str, int]
    """Addresses that a session needs."""


class Prepared(msgspec.Struct, frozen=True):
    """A release that can be opened."""

    folder: Path
    manifest: Manifest

    @property
    def release(self) -> str:
        """`2.15.0`."""
        return self.manifest.release

    def bundled(self) -> tuple[BundledLibrary, ...]:
        """The Metal libraries, as the imitated device needs them."""
        return tuple(
            BundledLibrary(library.name, library.start, library.size, frozenset(library.kernels))
            for library in self.manifest.bundled
        )

    def library_file(self, name: str) -> Path:
        """File with a compiled Metal library, by section."""
        for library in self.manifest.bundled:
            if library.name == name:
                return self.folder / library.file
        raise KeyError(name)

    def part(self, name: str) -> Part:
        """A file by region."""
        for part in self.manifest.parts:
            if part.name == name:
                return part
        raise KeyError(name)

    def nbytes(self) -> int:
        """Size on disk."""
        return sum(file.stat().st_blocks * 512 for file in self.folder.iterdir())


def cache_folder() -> Path:
    """Where prepared releases are kept."""
    return platformdirs.user_cache_path("opscan") / "sim"


def load(folder: Path, native: str) -> Prepared | None:
    """The release prepared in a folder; None when there is none of today's format.

    Raises PrepareError when files are missing, cut short or not what was written. Contents are
    read the first time, and again when a file's time has changed: about a second.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except msgspec.DecodeError:
        return None
    if manifest.format != FORMAT or manifest.native != native:
        return None
    files = [(part.file, part.nbytes, part.sha256) for part in manifest.parts]
    files += [(library.file, library.size, library.sha256) for library in manifest.bundled]
    seen = {name: _state(folder / name) for name, _, _ in files}
    for name, nbytes, _ in files:
        if seen[name][0] != nbytes:
            raise _damaged(manifest.release, name)
    if seen != _stamped(folder):
        for name, _, digest in files:
            if digest and wheel.digest(folder / name) != digest:
                raise _damaged(manifest.release, name)
        _stamp(folder, seen)
    return Prepared(folder, manifest)


def prepared_releases(root: Path) -> list[str]:
    """Names of the folders with a manifest, sorted."""
    return sorted(path.parent.name for path in root.glob(f"*/{MANIFEST}"))


def _state(path: Path) -> tuple[int, int]:
    """Size and time of a file; (-1, 0) where there is none."""
    try:
        found = path.stat()
    except OSError:
        return -1, 0
    return found.st_size, found.st_mtime_ns


def _stamped(folder: Path) -> dict[str, tuple[int, int]]:
    try:
        raw = (folder / _STAMP).read_bytes()
        return msgspec.json.decode(raw, type=dict[str, tuple[int, int]])
    except (OSError, msgspec.MsgspecError):
        return {}


def _stamp(folder: Path, seen: dict[str, tuple[int, int]]) -> None:
    # A folder that cannot be written to only costs another reading next time.
    with contextlib.suppress(OSError):
        partial = folder / f"{_STAMP}.{os.getpid()}"
        partial.write_bytes(msgspec.json.encode(seen))
        partial.replace(folder / _STAMP)


def _damaged(release: str, name: str) -> PrepareError:
    return PrepareError(
        f"the prepared files of torch {release} are damaged: {name}",
        remedy=f"Run: opscan sim remove torch=={release}; opscan sim prepare torch=={release}",
    )
