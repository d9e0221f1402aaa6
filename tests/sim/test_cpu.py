from __future__ import annotations

import pytest

from scanner.sim.machine.cpu import Cpu
from scanner.sim.machine.faults import BudgetSpent, Fault, MissingImport
from tests.sim.bench import (
    ADD_X0_X0_X1,
    BRANCH_TO_SELF,
    LOAD_X0_FROM_X0,
    RETURN,
    Bench,
)


def test_a_function_gets_arguments_and_returns(bench: Bench) -> None:
    add = bench.assemble(ADD_X0_X0_X1, RETURN)
    assert bench.cpu.call(add, [40, 2]) == 42
    assert bench.cpu.call(add, [(1 << 64) - 1, 1]) == 0


def test_imports_are_served_and_return_to_the_caller(bench: Bench) -> None:
    def serve(cpu: Cpu) -> None:
        cpu.set_x(0, 10 * cpu.x(0))

    bench.cpu.handlers["_tenfold"] = serve
    assert bench.cpu.call(bench.call_import("_tenfold"), [7]) == 70


def test_arguments_beyond_eight_are_on_the_stack(bench: Bench) -> None:
    seen: list[int] = []

    def serve(cpu: Cpu) -> None:
        seen.extend(cpu.memory.words(cpu.sp, 3))

    bench.cpu.handlers["_many"] = serve
    bench.cpu.call(bench.call_import("_many"), list(range(11)))
    assert seen == [8, 9, 10]


def test_handlers_may_call_emulated_code(bench: Bench) -> None:
    add = bench.assemble(ADD_X0_X0_X1, RETURN)

    def serve(cpu: Cpu) -> None:
        cpu.set_x(5, 5)
        inner = cpu.call(add, [1, 2])
        assert cpu.x(5) == 5, "registers of the interrupted code are kept"
        cpu.set_x(0, 100 + inner)

    bench.cpu.handlers["_outer"] = serve
    assert bench.cpu.call(bench.call_import("_outer")) == 103


def test_a_missing_import_is_named(bench: Bench) -> None:
    code = bench.call_import("_mystery")
    with pytest.raises(MissingImport, match="host function mystery is not imitated") as caught:
        bench.cpu.call(code)
    assert caught.value.name == "_mystery"
    assert bench.cpu.call(bench.assemble(ADD_X0_X0_X1, RETURN), [1, 1]) == 2


def test_an_exception_of_a_handler_comes_out_as_it_is(bench: Bench) -> None:
    def serve(cpu: Cpu) -> None:
        raise LookupError("mine")

    bench.cpu.handlers["_broken"] = serve
    with pytest.raises(LookupError, match="mine"):
        bench.cpu.call(bench.call_import("_broken"))


def test_bad_accesses_are_faults_with_frames(bench: Bench) -> None:
    code = bench.assemble(LOAD_X0_FROM_X0, RETURN)
    with pytest.raises(Fault, match="in emulated code") as caught:
        bench.cpu.call(code, [0x10])
    assert caught.value.frames[0] == code

    def serve(cpu: Cpu) -> None:
        cpu.memory.u64(0x10)

    bench.cpu.handlers["_reads"] = serve
    with pytest.raises(Fault, match="0x10 is not mapped"):
        bench.cpu.call(bench.call_import("_reads"))


def test_an_endless_loop_ends_with_the_budget(bench: Bench) -> None:
    bench.cpu.blocks = 1000
    with pytest.raises(BudgetSpent, match="within 1000 basic blocks"):
        bench.cpu.call(bench.assemble(BRANCH_TO_SELF))
    assert bench.cpu.call(bench.assemble(ADD_X0_X0_X1, RETURN), [2, 2]) == 4


def test_watched_instructions_are_reported(bench: Bench) -> None:
    add = bench.assemble(ADD_X0_X0_X1, RETURN)
    seen: list[int] = []
    bench.cpu.watch(add, lambda: seen.append(bench.cpu.x(0)))
    bench.cpu.call(add, [5, 1])
    bench.cpu.call(add, [6, 1])
    assert seen == [5, 6]


def test_floating_registers(bench: Bench) -> None:
    bench.cpu.set_d(3, 0.1)
    assert bench.cpu.d(3) == 0.1
    bench.cpu.set_s(3, 0.1)
    assert bench.cpu.s(3) == pytest.approx(0.1, rel=1e-7)
    bench.cpu.set_s(3, 1e300)
    assert bench.cpu.s(3) == float("inf")
