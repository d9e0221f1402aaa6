from __future__ import annotations

import math
import struct

import pytest

from scanner.sim.gpu import Gpu, chip
from scanner.sim.libraries import Loaded
from scanner.sim.machine.faults import Fault
from scanner.sim.osenv import dyld, hardware, libc, libm, numerals, stdio
from scanner.sim.osenv.ctype import CLASSES, tables
from scanner.sim.osenv.printf import Arguments, formatted
from scanner.sim.osenv.scanf import scanned
from tests.sim.bench import Bench


def bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("plain %% text", [], "plain % text"),
        ("%d|%5d|%-4d|%04x", [-1, 42, 7, 0xAB], "-1|   42|7   |00ab"),
        ("%u %llu %zu", [-1, -1, 3], "4294967295 18446744073709551615 3"),
        ("%ld %hhd", [-5, 0x1FF], "-5 -1"),
        ("%c%c", [79, 75], "OK"),
        ("%.3f %g %e", [bits(1.5), bits(0.1), bits(1e10)], "1.500 0.1 1.000000e+10"),
        ("%*d|%.*f", [6, 1, 1, bits(2.25)], "     1|2.2"),
        ("%p", [0x10], "0x10"),
        ("%s", [0], "(null)"),
        ("%@", [9], "<9>"),
    ],
)
def test_formats(bench: Bench, text: str, words: list[int], expected: str) -> None:
    arguments = Arguments(bench.cpu, bench.words(*words))
    assert formatted(text, arguments, lambda address: f"<{address}>") == expected


def test_strings_in_formats_may_be_cut(bench: Bench) -> None:
    place = bench.text("abcdef")
    assert formatted("%s|%.3s", Arguments(bench.cpu, bench.words(place, place))) == "abcdef|abc"


def test_snprintf_cuts_and_returns_the_full_length(bench: Bench) -> None:
    handler = stdio.imports(stdio.Console())["_snprintf"]
    out = bench.put(bytes(16))
    bench.arguments(out, 4, bench.text("%d-%d"), 0, 0, 0, 0, 0, 123, 456)
    handler(bench.cpu)
    assert bench.cpu.x(0) == 7
    assert bench.memory.text(out) == "123"


def test_what_is_written_is_kept_to_a_limit(bench: Bench) -> None:
    console = stdio.Console(limit=8)
    handlers = stdio.imports(console)
    assert bench.serve(handlers["_fwrite"], bench.text("first, second"), 1, 13, 0) == 13
    assert console.text == ", second"


@pytest.mark.parametrize(
    ("text", "base", "value", "length"),
    [("42rest", 10, 42, 2), ("  -7", 10, -7, 4), ("0x1fz", 16, 31, 4), ("none", 10, 0, 0)],
)
def test_integers_in_text(bench: Bench, text: str, base: int, value: int, length: int) -> None:
    place, end = bench.text(text), bench.words(0)
    found = bench.serve(numerals.imports()["_strtol"], place, end, base)
    assert found == value % (1 << 64)
    assert bench.memory.u64(end) == place + length


@pytest.mark.parametrize(
    ("text", "value", "length"),
    [("1.5e3x", 1500.0, 5), ("-inf", -math.inf, 4), (".25", 0.25, 3), ("x", 0.0, 0)],
)
def test_decimals_in_text(bench: Bench, text: str, value: float, length: int) -> None:
    place, end = bench.text(text), bench.words(0)
    bench.serve(numerals.imports()["_strtod"], place, end)
    assert bench.cpu.d(0) == value
    assert bench.memory.u64(end) == place + length


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("log", [0.0], -math.inf),
        ("log", [-1.0], math.nan),
        ("log1p", [-1.0], -math.inf),
        ("exp", [1000.0], math.inf),
        ("atanh", [-1.0], -math.inf),
        ("lgamma", [0.0], math.inf),
        ("pow", [0.0, -1.0], math.inf),
        ("pow", [2.0, 10.0], 1024.0),
        ("fmod", [-7.0, 3.0], -1.0),
        ("nextafter", [1.0, 2.0], 1.0 + 2**-52),
        ("cbrt", [-27.0], -3.0),
        ("__exp10", [3.0], 1000.0),
    ],
)
def test_mathematics(bench: Bench, name: str, arguments: list[float], expected: float) -> None:
    for index, value in enumerate(arguments):
        bench.cpu.set_d(index, value)
    libm.imports()[f"_{name}"](bench.cpu)
    assert bench.cpu.d(0) == pytest.approx(expected, nan_ok=True)


def test_single_precision_is_rounded(bench: Bench) -> None:
    bench.cpu.set_s(0, 1.0)
    bench.cpu.set_s(1, 2.0)
    libm.imports()["_nextafterf"](bench.cpu)
    assert bench.cpu.s(0) == 1.0 + 2**-23
    bench.cpu.set_s(0, 0.5)
    libm.imports()["_sinf"](bench.cpu)
    assert bench.cpu.s(0) == struct.unpack("<f", struct.pack("<f", math.sin(0.5)))[0]


def test_frexp_of_infinity_is_infinity(bench: Bench) -> None:
    place = bench.words(0)
    bench.cpu.set_d(0, math.inf)
    bench.serve(libm.imports()["_frexp"], place)
    assert bench.cpu.d(0) == math.inf


def test_character_classes() -> None:
    alpha, digit, space, upper = 0x100, 0x400, 0x4000, 0x8000
    assert CLASSES[ord("a")] & alpha
    assert not CLASSES[ord("a")] & (digit | space | upper)
    assert CLASSES[ord("7")] & (digit | 0xF) == digit | 7
    assert CLASSES[ord(" ")] & space
    assert not any(CLASSES[128:])
    lower, raised = struct.unpack_from("<I", tables(), 4 * (256 + 65))[0], ord("a")
    assert lower == raised


def test_the_environment_and_abort(bench: Bench) -> None:
    console = stdio.Console()
    handlers = libc.imports(console, {"HOME": "/home"}, bench.imports.allocate)
    place = bench.serve(handlers["_getenv"], bench.text("HOME"))
    assert bench.memory.text(place) == "/home"
    assert bench.serve(handlers["_getenv"], bench.text("HOME")) == place
    assert bench.serve(handlers["_getenv"], bench.text("OTHER")) == 0
    console.write("first\nwhat happened\n")
    with pytest.raises(Fault, match="aborted: what happened"):
        handlers["_abort"](bench.cpu)


def test_entropy_is_fixed_and_other_files_are_absent(bench: Bench) -> None:
    handlers = libc.imports(stdio.Console(), {}, bench.imports.allocate)
    assert bench.serve(handlers["_open"], bench.text("/etc/passwd")) == (1 << 64) - 1
    file = bench.serve(handlers["_open"], bench.text("/dev/urandom"))
    out = bench.put(bytes(8))
    assert bench.serve(handlers["_read"], file, out, 4) == 4
    assert bench.memory.read(out, 8) == b"\x5a" * 4 + bytes(4)


def test_unwind_sections_of_the_library_that_holds_an_address(bench: Bench) -> None:
    sections = {"__TEXT,__eh_frame": (0x10, 8), "__TEXT,__unwind_info": (0x20, 16)}
    libraries = [Loaded("a", 0x1000, 0x100, {}), Loaded("b", 0x2000, 0x100, sections)]
    handlers = dyld.imports(libraries, bench.imports.allocate)
    out = bench.words(*[0] * 5)
    assert bench.serve(handlers["__dyld_find_unwind_sections"], 0x2050, out) == 1
    assert bench.memory.words(out, 5) == (0x2000, 0x2010, 8, 0x2020, 16)
    assert bench.serve(handlers["__dyld_find_unwind_sections"], 0x3000, out) == 0


def test_sections_and_names_of_libraries(bench: Bench) -> None:
    libraries = [Loaded("libtorch_cpu.dylib", 0x1000, 0x900, {"__TEXT,metal": (0x40, 12)})]
    handlers = dyld.imports(libraries, bench.imports.allocate)
    size = bench.words(0)
    segment, section = bench.text("__TEXT"), bench.text("metal")
    assert bench.serve(handlers["_getsectiondata"], 0x1000, segment, section, size) == 0x1040
    assert bench.memory.u64(size) == 12
    name = bench.serve(handlers["__dyld_get_image_name"], 0)
    assert bench.memory.text(name).endswith("/libtorch_cpu.dylib")


@pytest.mark.parametrize(
    ("gpu", "family", "macos", "supported"),
    [
        ("M1", 1007, 15, True),
        ("M1", 1008, 15, False),
        ("M3", 1009, 15, True),
        ("M2", 5001, 14, True),
        ("M2", 5002, 15, False),
        ("M2", 5002, 26, True),
        ("M2", 9999, 26, False),
    ],
)
def test_gpu_families(gpu: str, family: int, macos: int, supported: bool) -> None:
    assert chip(gpu).supports(family, macos) is supported


def test_memory_of_a_chip() -> None:
    assert chip("M3", memory=64).working_set == 48 << 30
    with pytest.raises(KeyError):
        chip("Z80")


def test_core_count_and_system_controls(bench: Bench) -> None:
    handlers = hardware.imports(Gpu(cores=38, memory=1 << 36), (15, 5))
    out = bench.words(0)
    bench.serve(handlers["_CFNumberGetValue"], 1, 3, out)
    assert bench.memory.u32(out) == 38
    size = bench.words(8)
    assert bench.serve(handlers["_sysctlbyname"], bench.text("hw.memsize"), out, size) == 0
    assert bench.memory.u64(out) == 1 << 36
    missing = bench.serve(handlers["_sysctlbyname"], bench.text("kern.unknown"), out, size)
    assert missing == (1 << 64) - 1


@pytest.mark.parametrize(
    ("text", "form", "stored", "words"),
    [
        ("MacBookPro12,1", "%9[^,0123456789]%u,%u", 1, [b"MacBookPr"]),
        ("Mac14,2", "%9[^,0123456789]%u,%u", 3, [b"Mac", 14, 2]),
        ("arm64", "%9[^,0123456789]%u,%u", 2, [b"arm", 64]),
        ("", "%u", -1, []),
        ("x", "%u", 0, []),
        (" 7 -8", "%d %d", 2, [7, -8 % (1 << 32)]),
        ("ff:word", "%x:%s", 2, [255, b"word"]),
        ("12 34", "%*d %d", 1, [34]),
        ("123456", "%3u%u", 2, [123, 456]),
    ],
)
def test_scanning(
    bench: Bench, text: str, form: str, stored: int, words: list[int | bytes]
) -> None:
    places = [bench.put(bytes(16)) for _ in range(4)]
    assert scanned(text, form, Arguments(bench.cpu, bench.words(*places))) == stored
    for place, word in zip(places, words, strict=False):
        if isinstance(word, bytes):
            assert bench.memory.text(place).encode() == word
        else:
            assert bench.memory.u32(place) == word


def test_a_scanning_format_that_is_not_known(bench: Bench) -> None:
    with pytest.raises(Fault, match="scanning format '%f'"):
        scanned("1.5", "%f", Arguments(bench.cpu, bench.words(0)))
