"""Encodings, as Python itself reads them."""

from __future__ import annotations

import io
import tokenize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.source.decode import UndecodableError, decode

GOOD = [
    (b"x = 1\n", "x = 1\n"),
    ("é".encode(), "é"),
    (b"\xef\xbb\xbfx", "x"),
    (b"\xef\xbb\xbf# coding: utf-8\nx", "# coding: utf-8\nx"),
    (b"# -*- coding: latin-1 -*-\n\xe9", "# -*- coding: latin-1 -*-\né"),
    (b"#!/bin/python\n# vim: set fileencoding=cp1252 :\n\x80", None),
    (b"x = 1\n# coding: nonsense\n", "x = 1\n# coding: nonsense\n"),
    (b"\n\n# coding: nonsense\n", "\n\n# coding: nonsense\n"),
    (b"\x0c# coding: latin-1\r\n\xe9", None),
]
BAD = [
    (b"x\n\xe9", "line 2 is not valid utf-8"),
    (b"# coding: nonsense\n", "nonsense"),
    (b"\xef\xbb\xbf# coding: latin-1\n", "byte order mark"),
    (b"a\n\0", "line 2 has a null byte"),
]


@pytest.mark.parametrize(("content", "text"), GOOD)
def test_text_is_what_python_reads(content: bytes, text: str | None) -> None:
    name, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    assert decode(content) == content.decode(name)
    assert text is None or decode(content) == text


@pytest.mark.parametrize(("content", "why"), BAD)
def test_what_is_no_text_says_why(content: bytes, why: str) -> None:
    with pytest.raises(UndecodableError, match=why):
        decode(content)


@given(st.binary(max_size=200))
def test_any_bytes_are_text_or_refused_as_python_does(content: bytes) -> None:
    try:
        name, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        wanted: str | None = content.decode(name)
    except (SyntaxError, UnicodeDecodeError):
        wanted = None
    try:
        found: str | None = decode(content)
    except UndecodableError:
        found = None
    assert found == (None if wanted is None or "\0" in wanted else wanted)
