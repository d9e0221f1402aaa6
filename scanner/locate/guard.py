"""Keeps the user's files as they are while their code runs: writes below them are refused.

What Python announces through its audit hooks is covered: opening for writing, removing, renaming,
linking, making directories, changing modes, new sqlite databases; and `torch.save`, whose writer
is native. Not covered: other native code, subprocesses, and anything outside the protected roots.
Nothing is done about the network.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import platformdirs

__all__ = ["Guard", "protect"]

_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_Args = tuple[Any, ...]


def _opened(args: _Args) -> list[Any]:
    path, mode, flags = args
    if isinstance(mode, str):
        return [path] if set(mode) & set("wax+") else []
    return [path] if isinstance(flags, int) and flags & _WRITE_FLAGS else []


def _paths(*positions: int, descriptors: tuple[int, ...] = ()) -> Callable[[_Args], list[Any]]:
    """Reads an event's paths; one that is relative to a directory descriptor is passed over.

    `shutil.rmtree` works that way, and announces the whole tree by its path before.
    """

    def read(args: _Args) -> list[Any]:
        relative = any(len(args) > at and args[at] not in (-1, None) for at in descriptors)
        return [] if relative else [args[at] for at in positions]

    return read


def _new_directory(args: _Args) -> list[Any]:
    """Making a directory that exists fails anyway, and scripts rely on it (`exist_ok`)."""
    return [] if _exists(args[0]) else _paths(0, descriptors=(2,))(args)


def _new_database(args: _Args) -> list[Any]:
    name = args[0]
    inert = not isinstance(name, str | bytes) or name in ("", ":memory:", b":memory:")
    return [] if inert or _exists(name) else [name]


def _exists(path: Any) -> bool:
    return isinstance(path, str | bytes | os.PathLike) and os.path.exists(path)  # noqa: PTH110


_WRITTEN: dict[str, Callable[[_Args], list[Any]]] = {
    "open": _opened,
    "os.chmod": _paths(0, descriptors=(2,)),
    "os.chown": _paths(0, descriptors=(3,)),
    "os.link": _paths(1, descriptors=(3,)),
    "os.mkdir": _new_directory,
    "os.remove": _paths(0, descriptors=(1,)),
    "os.removexattr": _paths(0),
    "os.rename": _paths(0, 1, descriptors=(2, 3)),
    "os.rmdir": _paths(0, descriptors=(1,)),
    "os.setxattr": _paths(0),
    "os.symlink": _paths(1, descriptors=(2,)),
    "os.truncate": _paths(0),
    "os.utime": _paths(0, descriptors=(3,)),
    "shutil.rmtree": _paths(0),
    "sqlite3.connect": _new_database,
}
"""Audit event to the paths that it would change."""


class Guard:
    """What is protected, and what was refused."""

    def __init__(self, protected: Iterable[Path], allowed: Iterable[Path]) -> None:
        self._roots = [(_real(path), False) for path in protected]
        self._roots += [(_real(path), True) for path in allowed]
        self.refused: list[str] = []
        """Paths that were not written, relative to the first root where possible, in order."""
        self.active = True
        """An audit hook cannot be removed; an inactive guard lets everything pass."""

    def notes(self) -> tuple[str, ...]:
        """One line for each refused path, for the report."""
        return tuple(
            f"the file tried to write {path}; opscan refused"
            for path in dict.fromkeys(self.refused)
        )

    def check(self, path: Any) -> None:
        """Raises `PermissionError` when writing `path` would change the user's files."""
        if not self.active or not isinstance(path, str | bytes | os.PathLike):
            return
        real = _real(path)
        if real == os.devnull or self._is_allowed(real):
            return
        shown = self._shown(real)
        if shown not in self.refused:
            self.refused.append(shown)
        raise PermissionError(f"opscan is scanning this code and refused to write {shown}")

    def hook(self, event: str, args: _Args) -> None:
        """The audit hook; cheap for events that write nothing."""
        paths = _WRITTEN.get(event)
        if paths is not None and self.active:
            for path in paths(args):
                self.check(path)

    def cover_torch(self) -> None:
        """Lets `torch.save` ask as well; imports torch, so call it once torch is needed anyway."""
        import torch

        save = torch.save

        @functools.wraps(save)
        def guarded(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
            self.check(f)
            save(obj, f, *args, **kwargs)

        torch.save = guarded

    def _is_allowed(self, real: str) -> bool:
        """The deepest root above the path decides; outside all roots everything is allowed."""
        above = [(len(root), allowed) for root, allowed in self._roots if _is_below(real, root)]
        return max(above)[1] if above else True

    def _shown(self, real: str) -> str:
        root = self._roots[0][0] if self._roots else ""
        return os.path.relpath(real, root) if _is_below(real, root) else real


def _real(path: Any) -> str:
    return os.path.realpath(os.fsdecode(path))


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def protect(roots: Iterable[Path], allow: Iterable[Path] = ()) -> Guard:
    """Refuse writes below `roots` from now on, for the rest of this process.

    Writing stays allowed below the temporary directory, the user's cache directory and `allow`,
    unless a protected root lies deeper on the way to the path. Also keeps Python from writing
    bytecode. `Guard.cover_torch` is separate because it imports torch.
    """
    caches = [Path(tempfile.gettempdir()), Path(platformdirs.user_cache_dir()), *allow]
    guard = Guard(roots, caches)
    sys.dont_write_bytecode = True
    sys.addaudithook(guard.hook)
    return guard
