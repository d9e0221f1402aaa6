"""From the bytes of a Python file to its text, as PEP 263 says."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

__all__ = ["Decoded", "UndecodableError", "decode", "decoded"]

_DECLARED = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"[ \t\f]*(?:#[^\r\n]*)?")
_LINES = re.compile(rb"\r\n|\r|\n")


class UndecodableError(ValueError):
    """The file's bytes are no text in the encoding that it declares, or in UTF-8."""


class Decoded(NamedTuple):
    """A file's text and how it was written."""

    text: str
    """Without a byte order mark."""
    encoding: str
    marked: bool
    """Whether it begins with the byte order mark of UTF-8."""

    def encode(self, text: str) -> bytes:
        """Another text, written the same way. Raises `UnicodeEncodeError`."""
        return (codecs.BOM_UTF8 if self.marked else b"") + text.encode(self.encoding)


def decode(content: bytes) -> str:
    """The text without its byte order mark. Raises `UndecodableError` with the reason."""
    return decoded(content).text


def decoded(content: bytes) -> Decoded:
    """The same, with what is needed to write the file again."""
    marked = content.startswith(codecs.BOM_UTF8)
    body = content[len(codecs.BOM_UTF8) :] if marked else content
    name = _declared(body)
    if marked and name not in (None, "utf-8", "utf8", "utf-8-sig", "utf_8"):
        raise UndecodableError(f"it begins with the byte order mark of UTF-8 and declares {name}")
    try:
        text = body.decode(name or "utf-8")
    except UnicodeDecodeError as error:
        line = 1 + len(_LINES.findall(body[: error.start]))
        raise UndecodableError(f"line {line} is not valid {error.encoding}") from None
    except LookupError:
        raise UndecodableError(
            f"it declares the encoding {name}, which Python does not know"
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise UndecodableError(f"line {line} has a null byte, which Python source cannot have")
    return Decoded(text, "utf-8" if marked else name or "utf-8", marked)


def _declared(body: bytes) -> str | None:
    """The encoding named in a comment of the first two lines, of which the first must be blank."""
    for line in _LINES.split(body[:1024], maxsplit=2)[:2]:
        if found := _DECLARED.match(line):
            return found[1].decode("ascii", "replace").lower()
        if not _BLANK.fullmatch(line):
            return None
    return None
