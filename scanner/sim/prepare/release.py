"""Prepares a release: wheel, libraries, entry points, snapshot. Each step is kept when done."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from scanner.sim.machine.faults import Fault
from scanner.sim.prepare import snapshot, toolchain, wheel
from scanner.sim.prepare.errors import PrepareError
from scanner.sim.prepare.prepared import Prepared, cache_folder, load, prepared_releases

__all__ = ["list_prepared", "prepare", "remove"]

_RUNTIME = "libruntime.dylib"
_GLUE = "libglue.dylib"


def _silent(step: str) -> None:
    del step


def prepare(
    release: str,
    root: Path | None = None,
    progress: Callable[[str], None] = _silent,
    wheel_path: Path | None = None,
) -> Prepared:
    """The prepared release, made if it is not there: two to three minutes the first time.

    `progress` is told what is being done. Raises PrepareError.
    """
    root = root or cache_folder()
    native = toolchain.native_digest()
    folder = root / release
    found = load(folder, native)
    if found is not None:
        return found
    archive = wheel_path or wheel.find(release)
    work = root / f".work-{release}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        _build(archive, release, work, root, native, progress)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    made = load(folder, native)
    assert made is not None
    return made


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
    progress(f"unpacking {archive.name}")
    libraries = wheel.extract(archive, work)
    runtime = root / f"runtime-{native}" / _RUNTIME
    if not runtime.exists():
        progress("building the C++ runtime for arm64 macOS (once)")
        _build_runtime(runtime, work)
    progress("compiling the entry points")
    glue = work / _GLUE
    toolchain.build_glue(glue, work / "torch/include", release, work / "glue")
    progress("running the static initialisers")
    order = [runtime, *libraries, glue]
    identity = (archive.name, wheel.digest(archive))
    try:
        snapshot.build(order, root / release, release, identity, native)
    except Fault as error:
        raise PrepareError(
            f"torch {release} could not be started: {error.reason}",
            remedy="Report this; releases from 2.9 on are expected to work.",
        ) from error


def _build_runtime(runtime: Path, work: Path) -> None:
    runtime.parent.mkdir(parents=True, exist_ok=True)
    partial = runtime.with_suffix(".part")
    toolchain.build_runtime(partial, work / "runtime")
    partial.replace(runtime)
