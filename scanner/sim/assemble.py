"""A prepared release with everything that executes what it hands to the GPU."""

from __future__ import annotations

import hashlib
import importlib.util
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from scanner.errors import UsageError
from scanner.sim import host
from scanner.sim.gpu import Gpu
from scanner.sim.prepare.release import find_prepared

if TYPE_CHECKING:
    from scanner.sim.session import Session

__all__ = ["open_release", "simulator_digest"]

_NEEDED = ("unicorn", "llvmlite", "ziglang")


def open_release(
    release: str, macos: str, gpu: Gpu, *, fallback: bool = False, root: Path | None = None
) -> Session:
    """A session of a release that was prepared before; nothing is downloaded.

    `fallback` stands for `PYTORCH_ENABLE_MPS_FALLBACK=1`. Loads the emulator, so only a worker
    process may call it. Raises `PrepareError` when the release is not prepared or its files are
    damaged, `UsageError` when a package is missing or the macOS version is none.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"the simulator needs {' and '.join(missing)}, not installed in this Python",
            remedy='Install it: pip install "opscan-metal[sim]".',
        )
    prepared = find_prepared(release, root)
    from scanner.sim.launches import Shaders

    cache = platformdirs.user_cache_path("opscan") / "shaders"
    shaders = partial(Shaders, prepared, cache=cache)
    return host.open(prepared, macos, gpu, shaders=shaders, fallback=fallback)


def simulator_digest() -> str:
    """Names the simulator's own sources: results of another digest may differ."""
    root = Path(__file__).parent
    hasher = hashlib.sha256()
    sources = [path for path in root.rglob("*") if path.suffix in {".py", ".c", ".cpp", ".h"}]
    for source in sorted(sources):
        hasher.update(source.relative_to(root).as_posix().encode() + b"\0" + source.read_bytes())
    return hasher.hexdigest()[:16]
