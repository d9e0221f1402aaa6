"""The kernels of published releases: all externals known, results right, known faults seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import llvmlite.binding as llvm
import pytest
import torch

from scanner.sim.shaders.compiler import Compiler, NotCompilableError, Options
from scanner.sim.shaders.executor import Executor
from scanner.sim.shaders.functions.table import classify
from scanner.sim.shaders.library import Library
from tests.sim.shaders.accuracy import (
    BINARY,
    DTYPES,
    UNARY,
    compare,
    dense_kernels,
    run,
)
from tests.sim.shaders.releases import SECTIONS, extract

pytestmark = pytest.mark.wheels
COMPARED = ("2.9.1", "2.15.0")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """The worker processes use the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sections")


@pytest.fixture(scope="session")
def executors(folder: Path) -> Iterator[dict[str, Executor]]:
    """One executor a release, made when first asked for."""
    made: dict[str, Executor] = {}
    yield made
    for executor in made.values():
        executor.close()


@pytest.fixture
def release(
    request: pytest.FixtureRequest, folder: Path, executors: dict[str, Executor]
) -> tuple[Executor, Library]:
    section = extract(request.param, "metal_basic", folder)
    if request.param not in executors:
        executors[request.param] = Executor(section, folder / "cache")
    return executors[request.param], Library(section)


def externals(library: Library) -> set[str]:
    found: set[str] = set()
    for name in library.names():
        bitcode = library.bitcode(name)
        assert bitcode is not None
        module = llvm.parse_bitcode(bitcode, context=llvm.create_context())
        found.update(f.name for f in module.functions if f.is_declaration)
    return found


@pytest.mark.parametrize(("version", "section"), SECTIONS)
def test_every_external_is_classified(folder: Path, version: str, section: str) -> None:
    names = externals(Library(extract(version, section, folder)))
    assert len(names) >= 150
    families = {name: classify(name) for name in names}
    assert sorted(n for n, f in families.items() if f is None) == []
    unsupported = [n for n, f in families.items() if f is not None and f.kind == "unsupported"]
    assert bool(unsupported) == ((version, section) == ("2.15.0", "metal_40"))


@pytest.mark.parametrize(("version", "section"), SECTIONS)
def test_a_sample_of_kernels_compiles(folder: Path, version: str, section: str) -> None:
    library = Library(extract(version, section, folder))
    compiler, refused = Compiler(None), []
    for name in list(library.names())[::101]:
        bitcode = library.bitcode(name)
        assert bitcode is not None
        try:
            compiler.compile(bitcode, name, Options())
        except NotCompilableError as error:
            refused.append(str(error))
    assert all("tensor operation" in reason for reason in refused), refused


@pytest.mark.parametrize("release", COMPARED, indirect=True)
@pytest.mark.parametrize("op", [*UNARY, *BINARY])
def test_elementwise_kernels_agree_with_double_arithmetic(
    release: tuple[Executor, Library], op: str
) -> None:
    """Within two epsilons of the result's dtype; integers exactly; the same NaN and Inf."""
    executor, library = release
    kernels = dense_kernels(library, op)
    assert len(kernels) >= 3
    arity = 1 if op in UNARY else 2
    function = UNARY.get(op) or BINARY[op]
    for name, result, given in kernels:
        if torch.bool in (result, given) and op in ("sub", "fmod"):
            continue
        if not given.is_floating_point and op == "fmod":
            continue
        seen = compare(executor, library, name, function, (result, given), arity)
        assert (seen.nan_differs, seen.inf_differs) == (0, 0), name
        assert seen.worst <= (2.0 if result.is_floating_point else 0.0), name


@pytest.mark.parametrize(
    ("release", "lost"), [("2.9.1", True), ("2.15.0", False)], indirect=["release"]
)
def test_erfc_in_the_tail(release: tuple[Executor, Library], lost: bool) -> None:
    """2.9.1 computes 1 - erf(x), which is 0 from 3.93 on; 2.15.0 has its own algorithm."""
    executor, library = release
    x = torch.linspace(4.0, 9.0, 5001)
    got = torch.ones_like(x)
    run(executor, library, "erfc_dense_float_float", got, x)
    reference = torch.erfc(x.double())
    error = ((got - reference).abs() / reference).max().item()
    assert (got == 0).all().item() == lost
    assert error == 1 if lost else error < 2.5e-7


@pytest.mark.parametrize("release", ["2.9.1"], indirect=True)
def test_erfinv_is_a_little_off(release: tuple[Executor, Library]) -> None:
    executor, library = release
    x = torch.linspace(-0.999, 0.999, 1 << 18)
    got = torch.zeros_like(x)
    run(executor, library, "erfinv_dense_float_float", got, x)
    reference = torch.erfinv(x.double())
    error = ((got - reference).abs() / reference.abs().clamp_min(1e-30)).max().item()
    assert 1e-6 < error < 2e-6


@pytest.mark.parametrize("release", ["2.9.1"], indirect=True)
def test_the_absolute_value_of_an_integer_goes_through_float(
    release: tuple[Executor, Library],
) -> None:
    executor, library = release
    x = torch.tensor([-(2**24) - 1, 2**53 + 1, 5], dtype=DTYPES["long"])
    got = torch.zeros_like(x)
    run(executor, library, "abs_dense_long_long", got, x)
    assert got.tolist() == [2**24, 2**53, 5]
