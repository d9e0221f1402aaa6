"""Loads a source anew for every rung of the ladder."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from scanner.capture.frames import Frames
from scanner.capture.world import Rung
from scanner.locate.find import candidates
from scanner.locate.interface import Found, LocateOptions, Source
from scanner.locate.load import load

__all__ = ["Loader"]


class Loader:
    """Runs the user's file in the ambient world and lists its models.

    Modules of the user's that an earlier rung imported hold tensors of that rung's world, so they
    are forgotten before the file is run again.
    """

    def __init__(self, source: Source, options: LocateOptions, cwd: Path, frames: Frames) -> None:
        self._source = source
        self._options = options
        self._cwd = cwd
        self._frames = frames
        self._before = frozenset(sys.modules)
        os.chdir(cwd)

    def find(self, rung: Rung) -> Found:
        """Raises `LocateError` when the file cannot be loaded in this world."""
        self._forget()
        loaded = load(self._source, self._cwd)
        return candidates(loaded, self._source, replace(self._options, real=rung == "real"))

    def _forget(self) -> None:
        for name in [name for name in sys.modules if name not in self._before]:
            file = getattr(sys.modules[name], "__file__", None)
            if file and self._frames.is_user(file):
                del sys.modules[name]
