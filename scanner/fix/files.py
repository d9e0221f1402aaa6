"""One file: bytes → bytes, and back to where they came from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scanner.atomic import replace_file
from scanner.fix.mend import Mender, UnstableError
from scanner.source.decode import Decoded, UndecodableError, decoded

if TYPE_CHECKING:
    from scanner.records import Finding

__all__ = ["FixedFile", "fix_content", "put_back"]


class FixedFile(NamedTuple):
    """The content of one file before and after; findings name no file."""

    old: bytes
    new: bytes
    before: tuple[Finding, ...] = ()
    after: tuple[Finding, ...] = ()
    trouble: str = ""
    """Why nothing was changed, where that is no good sign."""
    texts: tuple[str, str] = ("", "")
    """Old and new as text, newlines as they are in the file."""
    remark: str = ""
    """Why corrections were left out, where that may surprise."""


def fix_content(content: bytes, mender: Mender) -> FixedFile:
    """Make the corrections in a file's content: encoding, byte order mark and newlines are kept."""
    try:
        source = decoded(content)
        mended = mender.mend(source.text)
        new = content if mended.text == source.text else _encoded(source, content, mended.text)
    except (SyntaxError, UnstableError, ValueError, RecursionError, MemoryError) as error:
        return FixedFile(content, content, trouble=str(error) or type(error).__name__)
    texts = (source.text, mended.text)
    return FixedFile(content, new, mended.before, mended.after, texts=texts, remark=mended.remark)


def put_back(path: str, fixed: FixedFile) -> str:
    """Write a changed file, whole; why that was not possible, or nothing.

    A file that is no longer as it was read is not overwritten.
    """
    try:
        if Path(path).read_bytes() != fixed.old:
            return "it changed while opscan was at work; nothing was written"
        if not os.access(path, os.W_OK):
            return "it may not be written"
        replace_file(Path(path), fixed.new)
    except OSError as error:
        return f"it cannot be written: {error.strerror or error}"
    return ""


def _encoded(source: Decoded, content: bytes, text: str) -> bytes:
    if source.encode(source.text) != content:
        raise UndecodableError(f"its bytes are not what {source.encoding} would write")
    new = source.encode(text)
    if decoded(new).text != text:
        raise UndecodableError(f"{source.encoding} would not give the corrected text back")
    return new
