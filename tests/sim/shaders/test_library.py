from __future__ import annotations

import struct
from pathlib import Path

import pytest

from scanner.errors import DataError
from scanner.sim.shaders.library import INDEX_VERSION, Library, unwrap
from tests.sim.shaders.air import GRID, buffer, module, write_library


@pytest.fixture
def section(tmp_path: Path) -> Path:
    kernels = {n: module(n, [buffer("out", 0), GRID], "  ret void") for n in ("b", "a", "c_d")}
    return write_library(tmp_path / "metal_basic", kernels)


def test_names_are_sorted_and_found(section: Path) -> None:
    library = Library(section)
    assert list(library.names()) == ["a", "b", "c_d"]
    assert len(library) == 3
    for name in library.names():
        bitcode = library.bitcode(name)
        assert bitcode is not None
        assert bitcode[:4] == b"BC\xc0\xde"
    assert library.bitcode("aa") is None
    assert library.digest("aa") == ""
    assert library.digest("a") != library.digest("b")


def test_the_index_is_made_once(section: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    Library(section, index)
    first = index.stat().st_mtime_ns
    Library(section, index)
    assert index.stat().st_mtime_ns == first


@pytest.mark.parametrize(
    "content", [b"", b"OPSCANKI", b"OPSCANKI" + struct.pack("<IIQ", INDEX_VERSION + 1, 3, 0)]
)
def test_an_unusable_index_is_made_again(section: Path, tmp_path: Path, content: bytes) -> None:
    index = tmp_path / "index"
    index.write_bytes(content)
    assert list(Library(section, index).names()) == ["a", "b", "c_d"]


def test_an_index_of_another_library_is_made_again(section: Path, tmp_path: Path) -> None:
    other = write_library(
        tmp_path / "other", {"z": module("z", [buffer("out", 0), GRID], "  ret void")}
    )
    index = tmp_path / "index"
    Library(other, index)
    assert "a" in list(Library(section, index).names())


@pytest.mark.parametrize("keep", [3, 90, 200])
def test_a_truncated_library_is_named(section: Path, tmp_path: Path, keep: int) -> None:
    cut = tmp_path / "cut"
    cut.write_bytes(section.read_bytes()[:keep])
    with pytest.raises(DataError, match="Metal library"):
        Library(cut)


def test_something_else_is_not_a_library(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"\xcf\xfa\xed\xfe" * 40)
    with pytest.raises(DataError, match="not a Metal library"):
        Library(other)


def test_unwrap_takes_raw_bitcode_and_refuses_the_rest() -> None:
    assert unwrap(b"BC\xc0\xderest") == b"BC\xc0\xderest"
    with pytest.raises(DataError, match="not LLVM bitcode"):
        unwrap(b"nothing of the kind, but long enough")
    with pytest.raises(DataError, match="not LLVM bitcode"):
        unwrap(struct.pack("<5I", 0x0B17C0DE, 0, 20, 1000, 0) + b"BC")
