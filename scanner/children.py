"""What every child process that runs opscan's own modules needs."""

from __future__ import annotations

import os
import site
from collections.abc import Mapping
from pathlib import Path

__all__ = ["importable"]


def importable(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables, and such that a child can import opscan from a tree that is not installed."""
    root = str(Path(__file__).parents[1])
    if root in {*site.getsitepackages(), site.getusersitepackages()}:
        return dict(environ)
    rest = environ.get("PYTHONPATH")
    return {**environ, "PYTHONPATH": os.pathsep.join([root, rest] if rest else [root])}
