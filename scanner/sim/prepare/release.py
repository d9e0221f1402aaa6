"""Prepares a release: wheel, libraries, entry points, snapshot. Each step is kept when done."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from scanner.sim.machine.faults import Fault
from scanner.sim.prepare import toolchain, wheel
from scanner.sim.prepare.errors import PrepareError
from scanner.sim.prepare.prepared import Prepared, cache_folder, load, prepared_releases

__all__ = ["Found", "find_prepared", "list_prepared", "prepare", "remove", "survey"]

_RUNTIME = "libruntime.dylib"
_GLUE = "libglue.dylib"


def _silent(step: str) -> None:
    del step


def prepare(
    release: str,
    root: Path | None = None,
    progress: Callable[[str], None] = _silent,
    wheel_path: Path | None = None,
    downloading: Callable[[int, int], None] = wheel.silent,
) -> Prepared:
    """The prepared release, made if it is not there: two to three minutes the first time.

    `progress` is told what is being done, `downloading` bytes that have arrived and all of them.
    Raises PrepareError.
    """
    root = root or cache_folder()
    native = toolchain.native_digest()
    folder = root / release
    found = load(folder, native)
    if found is not None:
        return found
    archive = wheel_path or wheel.find(release, None, progress, downloading)
    work = root / f".work-{release}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _build(archive, release, work, root, native, progress)
    # Kept until here, so that an interrupted preparation goes on where it stopped.
    shutil.rmtree(work, ignore_errors=True)
    made = load(folder, native)
    assert made is not None
    return made


def find_prepared(release: str, root: Path | None = None) -> Prepared:
    """The release, which must have been prepared before: nothing is downloaded or built.

    Raises PrepareError, which says how to prepare it.
    """
    found = load((root or cache_folder()) / release, toolchain.native_digest())
    if found is None:
        raise PrepareError(
            f"torch {release} is not prepared for the simulator",
            remedy=f"Run `opscan sim prepare torch=={release}` once: some minutes and a download.",
        )
    return found


def list_prepared(root: Path | None = None) -> list[Prepared]:
    """All usable prepared releases."""
    root = root or cache_folder()
    native = toolchain.native_digest()
    found = []
    for name in prepared_releases(root):
        try:
            known = load(root / name, native)
        except PrepareError:
            continue
        if known is not None:
            found.append(known)
    return found


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of prepared files."""

    release: str
    state: Literal["usable", "outdated", "damaged"]
    """*outdated* was made by another version of opscan; both must be prepared again."""
    nbytes: int
    """On disk."""
    folder: str
    wheel: str = ""
    sha256: str = ""
    """Of the wheel."""


def survey(root: Path | None = None) -> list[Found]:
    """Everything that has been prepared, whether it can be used or not, by release."""
    root = root or cache_folder()
    native = toolchain.native_digest()
    found = [_found(root / name, native) for name in prepared_releases(root)]
    return sorted(found, key=lambda each: [int(part) for part in re.findall(r"\d+", each.release)])


def _found(folder: Path, native: str) -> Found:
    bare = Found(
        release=folder.name,
        state="outdated",
        nbytes=sum(file.stat().st_blocks * 512 for file in folder.iterdir()),
        folder=str(folder),
    )
    try:
        known = load(folder, native)
    except PrepareError:
        return msgspec.structs.replace(bare, state="damaged")
    if known is None:
        return bare
    wheel_name, sha256 = known.manifest.wheel, known.manifest.wheel_sha256
    return msgspec.structs.replace(bare, state="usable", wheel=wheel_name, sha256=sha256)


def remove(release: str, root: Path | None = None) -> None:
    """Deletes a prepared release."""
    shutil.rmtree((root or cache_folder()) / release, ignore_errors=True)


def _build(
    archive: Path,
    release: str,
    work: Path,
    root: Path,
    native: str,
    progress: Callable[[str], None],
) -> None:
    identity = (archive.name, wheel.digest(archive))
    libraries = _unpacked(archive, work, identity[1], progress)
    runtime = root / f"runtime-{native}" / _RUNTIME
    if not runtime.exists():
        progress("building the C++ runtime for arm64 macOS (once)")
        _finish(runtime, lambda to: toolchain.build_runtime(to, work / "runtime"))
    glue = work / f"{native}-{_GLUE}"
    if not glue.exists():
        progress("compiling the entry points")
        include = work / "torch/include"
        _finish(glue, lambda to: toolchain.build_glue(to, include, release, work / "glue"))
    progress("running the static initialisers")
    # The emulator is loaded only here: see the licence note in docs/simulator.md.
    from scanner.sim.prepare import snapshot

    order = [runtime, *libraries, glue]
    try:
        snapshot.build(order, root / release, release, identity, native)
    except Fault as error:
        raise PrepareError(
            f"torch {release} could not be started: {error.reason}",
            remedy="Report this; releases from 2.9 on are expected to work.",
        ) from error


def _unpacked(
    archive: Path, work: Path, identity: str, progress: Callable[[str], None]
) -> list[Path]:
    """The libraries of a wheel; unpacked again when the folder holds another wheel's."""
    done = work / "unpacked"
    if not done.is_file() or done.read_text() != identity:
        progress(f"unpacking {archive.name}")
        shutil.rmtree(work, ignore_errors=True)
        wheel.extract(archive, work)
        done.write_text(identity)
    return [work / name for name in wheel.DYLIBS]


def _finish(target: Path, make: Callable[[Path], None]) -> None:
    """Makes a file that exists only when it is complete."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".part")
    make(partial)
    partial.replace(target)
