"""A prepared release on disk."""

from __future__ import annotations

from pathlib import Path

import msgspec
import platformdirs

from scanner.sim.libraries import BundledLibrary, Loaded
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

    Raises PrepareError when files are missing or cut short.
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
    for part in manifest.parts:
        _check(folder / part.file, part.nbytes, manifest.release)
    for library in manifest.bundled:
        _check(folder / library.file, library.size, manifest.release)
    return Prepared(folder, manifest)


def prepared_releases(root: Path) -> list[str]:
    """Names of the folders with a manifest, sorted."""
    return sorted(path.parent.name for path in root.glob(f"*/{MANIFEST}"))


def _check(path: Path, nbytes: int, release: str) -> None:
    size = path.stat().st_size if path.is_file() else -1
    if size != nbytes:
        raise PrepareError(
            f"the prepared files of torch {release} are damaged: {path.name}",
            remedy=f"Run: opscan sim remove torch=={release}; opscan sim prepare torch=={release}",
        )
