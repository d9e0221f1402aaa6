from __future__ import annotations

from pathlib import Path

import pytest

from scanner.sim.loader.macho import MachOError, Section, parse
from tests.sim.libraries import DATA, PAGE, Draft


def test_segments_sections_and_symbols(tmp_path: Path) -> None:
    draft = Draft(
        symbols={"_one": 0x10, "_two": DATA + 8},
        sections=[("__DATA", "__mod_init_func", DATA + 16, 8)],
    )
    library = parse(draft.write(tmp_path / "lib.dylib"))
    assert library.symbols == {"_one": 0x10, "_two": DATA + 8}
    assert [segment.name for segment in library.segments] == ["__TEXT", "__DATA", "__LINKEDIT"]
    assert library.size == 2 * PAGE
    assert library.section("__mod_init_func") == Section(
        "__DATA", "__mod_init_func", DATA + 16, 8, PAGE + 16
    )
    assert library.section("__nothing") is None


def test_chained_fixups_are_found(tmp_path: Path) -> None:
    library = parse(Draft(chained=b"fixups").write(tmp_path / "lib.dylib"))
    assert library.dyld_info is None
    assert library.chained_fixups is not None
    assert library.slice(library.chained_fixups) == b"fixups"


@pytest.mark.parametrize(
    "draft", [Draft(cpu=0x01000007), Draft(magic=0xBEBAFECA)], ids=["x86-64", "universal"]
)
def test_other_files_are_refused(tmp_path: Path, draft: Draft) -> None:
    with pytest.raises(MachOError, match="not an arm64"):
        parse(draft.write(tmp_path / "lib.dylib"))


@pytest.mark.parametrize("size", [0, 16, 100, 2 * PAGE + 4])
def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, size: int) -> None:
    path = Draft(symbols={"_one": 0}).write(tmp_path / "lib.dylib")
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(MachOError, match=r"cut short|empty"):
        parse(path)
