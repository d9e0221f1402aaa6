from opdb.build.control_flow import Flow
from tests.opdb.extraction.arm64 import BASE, BLR_X8, BRK, NOP, RET, Library, b, bl, cbz_x0

THROW, PUTS, QSORT = 0xF0000, 0xF1000, 0xF2000
IMPORTS = {THROW: "___cxa_throw", PUTS: "_puts", QSORT: "_qsort"}


def flow(*codes):
    functions = {f"f{place}": code for place, code in enumerate(codes)}
    return Flow(Library(functions, imports=IMPORTS))


def at(*sizes):
    """Address after functions of some sizes, in instructions."""
    return BASE + 4 * sum(sizes)


def test_a_function_that_returns():
    assert flow([NOP, RET]).returns(BASE)


def test_a_function_that_throws():
    assert not flow([NOP, bl(BASE + 4, THROW)]).returns(BASE)


def test_one_returning_branch_is_enough():
    code = [cbz_x0(BASE, BASE + 8), bl(BASE + 4, THROW), RET]
    assert flow(code).returns(BASE)


def test_two_throwing_branches_are_not():
    code = [cbz_x0(BASE, BASE + 8), bl(BASE + 4, THROW), bl(BASE + 8, THROW), RET]
    assert not flow(code).returns(BASE)


def test_code_after_a_throw_is_a_landing_pad_and_does_not_count():
    code = [bl(BASE, THROW), RET]
    assert not flow(code).returns(BASE)


def test_a_trap_does_not_return():
    assert not flow([BRK]).returns(BASE)


def test_throwing_is_seen_through_calls_and_tail_calls():
    second, third = at(2), at(2, 1)
    found = flow([bl(BASE, second), RET], [b(second, third)], [bl(third, THROW)])
    assert not found.returns(BASE)


def test_a_loop_ends_and_recursion_is_taken_to_return():
    assert not flow([NOP, b(BASE + 4, BASE)]).returns(BASE)
    assert flow([bl(BASE, BASE), RET]).returns(BASE)


def test_the_answer_does_not_depend_on_who_asked_first():
    """f0 … f5 call one another in a row, and the last throws: too deep from f0, seen from f2."""
    codes = [[bl(at(2 * n), at(2 * n + 2)), RET] for n in range(5)] + [[bl(at(10), THROW), RET]]
    asked = flow(*codes)
    assert asked.returns(at(0))
    assert not asked.returns(at(4))
    assert not flow(*codes).returns(at(4))


def test_calls_on_every_path_are_certain():
    code = [
        bl(BASE, PUTS),
        cbz_x0(BASE + 4, BASE + 16),
        bl(BASE + 8, QSORT),
        RET,
        NOP,
        RET,
    ]
    assert flow(code).certain(BASE) == [PUTS]


def test_calls_in_both_branches_are_certain():
    code = [
        cbz_x0(BASE, BASE + 12),
        bl(BASE + 4, QSORT),
        RET,
        bl(BASE + 12, QSORT),
        RET,
    ]
    assert flow(code).certain(BASE) == [QSORT]


def test_paths_that_throw_do_not_count():
    code = [
        cbz_x0(BASE, BASE + 12),
        bl(BASE + 4, PUTS),
        RET,
        bl(BASE + 12, THROW),
    ]
    assert flow(code).certain(BASE) == [PUTS]


def test_calls_in_a_loop_that_may_not_run_are_not_certain():
    code = [
        cbz_x0(BASE, BASE + 12),
        bl(BASE + 4, PUTS),
        b(BASE + 8, BASE),
        bl(BASE + 12, QSORT),
        RET,
    ]
    assert flow(code).certain(BASE) == [QSORT]


def test_indirect_calls_are_passed_over_and_tail_calls_count():
    code = [BLR_X8, bl(BASE + 4, PUTS), b(BASE + 8, QSORT)]
    assert flow(code).certain(BASE) == [PUTS, QSORT]


def test_nothing_is_certain_about_a_function_that_only_throws():
    assert flow([bl(BASE, PUTS), bl(BASE + 4, THROW)]).certain(BASE) == []
