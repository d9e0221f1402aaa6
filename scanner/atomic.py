"""Files that are replaced whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE

__all__ = ["replace_file"]


def replace_file(path: Path, content: bytes) -> None:
    """Write a file in one step, so that no reader ever sees half of it; its mode is kept.

    A link is followed: the file that it leads to is replaced. Raises `OSError`.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)  # a pipe or device: there is nothing to replace
        return
    final = path.resolve()
    draft = final.with_name(f".{final.name}.{os.getpid()}")
    try:
        draft.write_bytes(content)
        if final.exists():
            draft.chmod(S_IMODE(final.stat().st_mode))
        draft.replace(final)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
