"""Which line of the user's own code an op comes from."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from pathlib import Path
from types import CodeType, FrameType
from typing import Literal

from scanner.records import Location

__all__ = ["Frames"]

_Owner = Literal["user", "library", "hidden"]
_HERE = str(Path(__file__).resolve().parent.parent)


class Frames:
    """Finds the deepest user frame on the stack, and the library line it called, if any.

    User code is what lies outside the interpreter's and the installed packages' directories, or
    inside one of `own`. torch's and opscan's own frames are never shown.
    """

    def __init__(self, cwd: Path, own: tuple[Path, ...] = ()) -> None:
        self._cwd = str(cwd)
        self._own = tuple(str(path) for path in own)
        self._installed = _installed_roots()
        self._owners: dict[CodeType, _Owner] = {}
        self._locations: dict[tuple[str, int, str, str], Location] = {}

    def find(self, module: str) -> Location | None:
        """Location of the innermost user frame of the running thread; None without one."""
        library = ""
        frame: FrameType | None = sys._getframe(1)
        owners = self._owners
        while frame is not None:
            code = frame.f_code
            owner = owners.get(code)
            if owner is None:
                owner = owners[code] = self._owner(code.co_filename)
            if owner == "user":
                return self.at(code.co_filename, frame.f_lineno, module, library)
            if owner == "library" and not library:
                library = f"{self._shown(code.co_filename)}:{frame.f_lineno}"
            frame = frame.f_back
        return None

    def at(self, file: str, line: int, module: str = "", library: str = "") -> Location:
        """The location of a known line."""
        key = (file, line, module, library)
        found = self._locations.get(key)
        if found is None:
            found = self._locations[key] = Location(
                file=self._shown(file),
                line=line,
                code=linecache.getline(file, line).strip(),
                module=module,
                library=library,
            )
        return found

    def is_user(self, file: str) -> bool:
        """Whether a source file is the user's own."""
        return self._owner(file) == "user"

    def _owner(self, file: str) -> _Owner:
        path = os.path.realpath(file) if not file.startswith("<") else file
        if path.startswith("<") or _inside(path, _HERE):
            return "hidden"
        if any(_inside(path, root) for root in self._own):
            return "user"
        for root in self._installed:
            if _inside(path, root):
                package = path[len(root) + 1 :].split(os.sep, 1)[0]
                return "hidden" if package in _HIDDEN or "packages" not in root else "library"
        return "user"

    def _shown(self, file: str) -> str:
        """Relative to the working directory, else to the package root, never a machine path."""
        path = os.path.realpath(file)
        for root in (self._cwd, *self._installed):
            if _inside(path, root):
                return Path(os.path.relpath(path, root)).as_posix()
        return Path(os.path.relpath(path, self._cwd)).as_posix()


_HIDDEN = frozenset({"torch", "torchgen", "functorch"})


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root + os.sep)


def _installed_roots() -> tuple[str, ...]:
    """Directories of installed packages first, then those of the standard library."""
    packages = {os.path.realpath(p) for p in sys.path if p.endswith(("-packages", "site-packages"))}
    paths = sysconfig.get_paths()
    packages |= {os.path.realpath(paths[name]) for name in ("purelib", "platlib")}
    standard = {os.path.realpath(paths[name]) for name in ("stdlib", "platstdlib")}
    return (*sorted(packages, key=len, reverse=True), *sorted(standard, key=len, reverse=True))
