"""Functions of a release that are watched, called or replaced from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanner.sim.catch_all import enable_fallback
from scanner.sim.prepare.errors import PrepareError
from scanner.sim.prepare.prepared import FORMAT, Manifest, Prepared
from scanner.sim.watches import Watches
from tests.sim.bench import ADD_X0_X0_X1, RETURN, Bench

NOP = 0xD503201F


def nothing() -> None:
    """Nobody asks."""


@pytest.mark.parametrize(
    ("name", "kind", "seen"),
    [
        ("N3c1011LinAlgErrorE", "RuntimeError", "LinAlgError"),
        ("N3c1016OutOfMemoryErrorE", "RuntimeError", "OutOfMemoryError"),
        ("N3c105ErrorE", "RuntimeError", "RuntimeError"),
        ("N3c1011LinAlgErrorE", "IndexError", "IndexError"),
    ],
)
def test_the_class_that_python_sees(bench: Bench, name: str, kind: str, seen: str) -> None:
    """Type information is {vtable, name}; Apple sets the name's highest bit."""
    throw = bench.assemble(RETURN)
    watches = Watches(bench.cpu, {"throw": throw}, nothing)
    bench.cpu.call(throw, [0, bench.words(0, bench.text(name) | 1 << 63)])
    assert watches.python_class(kind) == seen
    watches.begin()
    assert watches.python_class(kind) == kind


def test_sizes_are_asked_of_the_allocator_once(bench: Bench) -> None:
    """The stand-in answers allocator + buffer."""
    allocate, size_of = bench.assemble(RETURN), bench.assemble(ADD_X0_X0_X1, RETURN)
    asked: list[int] = []
    bench.cpu.watch(size_of, lambda: asked.append(bench.cpu.x(1)))
    symbols = {"mps_allocate": allocate, "mps_requested_size": size_of}
    watches = Watches(bench.cpu, symbols, nothing)
    assert watches.requested(7) is None
    bench.cpu.call(allocate, [100, 64])
    assert [watches.requested(7), watches.requested(7), asked] == [107, 107, [7]]
    bench.cpu.call(allocate, [(1 << 64) - 8, 64])
    assert watches.requested(7) is None
    watches.restart()
    assert watches.requested(7) is None
    assert asked == [7, 7]


def test_the_operator_that_is_handed_over_is_reported(bench: Bench) -> None:
    fallback = bench.assemble(RETURN)
    seen: list[str] = []
    Watches(bench.cpu, {"mps_fallback": fallback}, lambda: seen.append("fallback"))
    bench.cpu.call(fallback)
    assert seen == ["fallback"]


def prepared(**symbols: int) -> Prepared:
    return Prepared(
        Path(),
        Manifest(FORMAT, "9.9.9", "", "", "", (), (), (), {}, {}, 0, symbols),
    )


def test_what_raises_becomes_what_falls_back(bench: Bench) -> None:
    """The first function would leave x0 as it is."""
    raising = bench.assemble(NOP, NOP, NOP, RETURN)
    falling = bench.assemble(ADD_X0_X0_X1, RETURN)
    enable_fallback(bench.memory, prepared(mps_error_fallback=raising, mps_fallback=falling))
    assert bench.cpu.call(raising, [40, 2]) == 42


def test_an_old_snapshot_has_no_fallback_to_offer(bench: Bench) -> None:
    with pytest.raises(PrepareError, match="does not say where") as caught:
        enable_fallback(bench.memory, prepared(mps_fallback=1))
    assert "opscan sim prepare torch==9.9.9" in caught.value.remedy
