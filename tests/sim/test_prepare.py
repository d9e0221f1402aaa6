from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scanner.sim.prepare import release, wheel
from scanner.sim.prepare.errors import PrepareError
from scanner.sim.prepare.metallib import kernel_names
from scanner.sim.prepare.prepared import FORMAT, MANIFEST, Library, Manifest, Part, load

NATIVE = "0123456789abcdef"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def manifest(folder: Path, **changed: Any) -> Manifest:
    """A manifest with one part and one Metal library, and their files."""
    (folder / "heap.mem").write_bytes(b"content")
    (folder / "metal_basic.metallib").write_bytes(b"MTLB")
    made = Manifest(
        format=FORMAT,
        release="9.9.9",
        wheel="torch-9.9.9.whl",
        wheel_sha256="00",
        native=NATIVE,
        parts=(Part("heap", "heap.mem", 0x1000, 0x4000, 7, digest(b"content")),),
        libraries=(),
        bundled=(
            Library("metal_basic", 0x5000, 4, "metal_basic.metallib", ("erf",), digest(b"MTLB")),
        ),
        functions={"_malloc": 0x10},
        data={},
        data_used=64,
        symbols={},
    )
    made = msgspec.structs.replace(made, **changed)
    (folder / MANIFEST).write_bytes(msgspec.json.encode(made))
    return made


def test_a_prepared_release_is_found_again(tmp_path: Path) -> None:
    made = manifest(tmp_path)
    found = load(tmp_path, NATIVE)
    assert found is not None
    assert found.manifest == made
    assert found.part("heap").size == 0x4000
    assert found.library_file("metal_basic") == tmp_path / "metal_basic.metallib"
    (bundled,) = found.bundled()
    assert bundled.kernels == {"erf"}
    with pytest.raises(KeyError):
        found.library_file("metal_99")


def test_what_was_made_by_another_version_is_not_used(tmp_path: Path) -> None:
    assert load(tmp_path, NATIVE) is None
    manifest(tmp_path, format=FORMAT + 1)
    assert load(tmp_path, NATIVE) is None
    manifest(tmp_path)
    assert load(tmp_path, "another digest") is None
    (tmp_path / MANIFEST).write_bytes(b'{"format": 1')
    assert load(tmp_path, NATIVE) is None


@pytest.mark.parametrize("name", ["heap.mem", "metal_basic.metallib"])
def test_files_that_are_cut_short_or_missing_are_named(tmp_path: Path, name: str) -> None:
    manifest(tmp_path)
    file = tmp_path / name
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(PrepareError, match=rf"torch 9\.9\.9 are damaged: {name}") as caught:
        load(tmp_path, NATIVE)
    assert "opscan sim remove torch==9.9.9" in caught.value.remedy
    file.unlink()
    with pytest.raises(PrepareError, match="damaged"):
        load(tmp_path, NATIVE)


@pytest.mark.parametrize("name", ["heap.mem", "metal_basic.metallib"])
def test_files_of_another_content_are_named(tmp_path: Path, name: str) -> None:
    """Also after they were found right once, as long as their time says that they changed."""
    manifest(tmp_path)
    assert load(tmp_path, NATIVE) is not None
    file = tmp_path / name
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    os.utime(file, ns=(1, 1))
    with pytest.raises(PrepareError, match=rf"damaged: {name}"):
        load(tmp_path, NATIVE)


def test_contents_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest(tmp_path)
    assert load(tmp_path, NATIVE) is not None

    def unread(*_: object) -> None:
        raise AssertionError("the files were read again")

    monkeypatch.setattr(wheel, "digest", unread)
    assert load(tmp_path, NATIVE) is not None
    (tmp_path / "verified.json").write_bytes(b"{")
    with pytest.raises(AssertionError):
        load(tmp_path, NATIVE)


def test_manifests_without_digests_of_libraries_are_used(tmp_path: Path) -> None:
    made = manifest(tmp_path)
    library = msgspec.structs.replace(made.bundled[0], sha256="")
    manifest(tmp_path, bundled=(library,))
    assert load(tmp_path, NATIVE) is not None


def test_removing_and_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release.toolchain, "native_digest", lambda: NATIVE)
    folders = {name: tmp_path / name for name in ("9.9.9", "8.8.8")}
    for folder in folders.values():
        folder.mkdir()
        manifest(folder)
    (folders["8.8.8"] / "heap.mem").unlink()
    assert [found.folder.name for found in release.list_prepared(tmp_path)] == ["9.9.9"]
    release.remove("9.9.9", tmp_path)
    assert release.list_prepared(tmp_path) == []


@pytest.mark.parametrize("text", ["latest", "2.9", "2.9.1; rm -rf", "../2.9.1"])
def test_a_release_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(PrepareError, match="is not a release"):
        wheel.find(text, tmp_path)


def test_a_wheel_in_the_cache_is_used(tmp_path: Path) -> None:
    kept = tmp_path / "torch-9.9.9-cp312-none-macosx_11_0_arm64.whl"
    kept.write_bytes(b"")
    assert wheel.find("9.9.9", tmp_path) == kept


def test_without_network_the_reason_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(command: list[str], *_rest: Any) -> tuple[int, str]:
        assert "torch==9.9.9" in command
        return 1, "WARNING: retry\nERROR: no route\n"

    monkeypatch.setattr(wheel, "_followed", offline)
    with pytest.raises(PrepareError, match=r"not prepared .* download .*ERROR: no route") as caught:
        wheel.find("9.9.9", tmp_path)
    assert "connection" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_bytes_that_have_arrived_are_told() -> None:
    said = (
        "print('Collecting torch'); print('Progress 5 of 10'); print('Progress 10 of 10'); exit(4)"
    )
    told: list[tuple[int, int]] = []
    found = wheel._followed(
        [sys.executable, "-c", said], os.environ, lambda *each: told.append(each)
    )
    assert found == (4, "Collecting torch\n")
    assert told == [(5, 10), (10, 10)]


def archive(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name in names:
            made.writestr(name, name)
    return path


def test_only_what_is_needed_is_unpacked(tmp_path: Path) -> None:
    header, other = "torch/include/c10/core/Device.h", "torch/nn/functional.py"
    made = archive(tmp_path / "torch.whl", *wheel.DYLIBS, header, other)
    wheel.extract(made, tmp_path / "out")
    found = {
        path.relative_to(tmp_path / "out").as_posix()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    }
    assert found == {*wheel.DYLIBS, header}


def test_a_wheel_of_another_system_is_refused(tmp_path: Path) -> None:
    made = archive(tmp_path / "torch-linux.whl", "torch/lib/libtorch_cpu.so")
    with pytest.raises(PrepareError, match="not a wheel for macOS"):
        wheel.extract(made, tmp_path / "out")


def test_a_damaged_wheel_is_named(tmp_path: Path) -> None:
    made = archive(tmp_path / "torch.whl", *wheel.DYLIBS)
    made.write_bytes(made.read_bytes()[:40])
    with pytest.raises(PrepareError, match="is damaged"):
        wheel.extract(made, tmp_path / "out")


def test_names_of_kernels() -> None:
    """Header, then a list: count, and for each function its size, tagged fields and an end."""

    def function(name: bytes) -> bytes:
        text = name + b"\0"
        fields = b"NAME" + struct.pack("<H", len(text)) + text
        fields += b"TYPE" + struct.pack("<H", 1) + b"\x02" + b"ENDT"
        return struct.pack("<I", len(fields) + 4) + fields

    start = 88
    listed = struct.pack("<I", 2) + function(b"erf_float") + function(b"add_half")
    library = b"MTLB".ljust(24, b"\0") + struct.pack("<Q", start)
    assert kernel_names(library.ljust(start, b"\0") + listed) == ["add_half", "erf_float"]
    with pytest.raises(ValueError, match="not a Metal library"):
        kernel_names(b"ELF")


def test_listing_needs_no_emulator() -> None:
    """unicorn is GPL: only the process that emulates may load it."""
    code = (
        "import sys, scanner.sim.host, scanner.sim.gpu, scanner.sim.prepare.release;"
        "assert not {'unicorn', 'llvmlite', 'torch'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
