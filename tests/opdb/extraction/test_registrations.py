import pytest

from opdb.build.registrations import catch_all, registrations, schemas, short_name
from tests.opdb.extraction.arm64 import BASE, RET, Library, add, adrp, bl, mov, str_sp

IMPL = 0xF0000
DEF = 0xF2000
NEW = 0xF3000
CONSTRUCT = 0xF4000
FALLBACK = 0xF5000
IMPORTS = {
    IMPL: "__ZNR5torch7Library5_implEPKcONS_11CppFunctionENS_17_RegisterOrVerifyE",
    DEF: "__ZNR5torch7Library3defIPKcEERS0_OT_",
    NEW: "__Znwm",
    CONSTRUCT: "__ZN5torch11CppFunctionC2IFN2at6TensorERKS2_EEEPT_",
    FALLBACK: "__ZNR5torch7Library9_fallbackEONS_11CppFunctionE",
}
NAMES = {0x50000: "abs", 0x50010: "aten::neg.out", 0x51000: "sin(Tensor self) -> Tensor"}
MPS = "__ZN2at12_GLOBAL__N_134TORCH_LIBRARY_IMPL_init_aten_MPS_2ERN5torch7LibraryE"
DEFINITIONS = "__ZN2atL23TORCH_LIBRARY_init_atenERN5torch7LibraryE"
WRAPPED = (
    "__ZN3c104impl28wrap_kernel_functor_unboxed_INS0_6detail24WrapFunctionIntoFunctor_INS_26Compile"
    "TimeFunctionPointerIFvRKN2at6TensorEEXadL_ZNS4_12_GLOBAL__N_118wrapper_MPS_outE_absES7_EEEE4call"
)
MADE = "__ZN5torch11CppFunction21makeFromBoxedFunctionIXadL_ZN2atL12mps_fallbackERKNSEEES0_v"
BOXED = "__ZN3c1011BoxedKernel19make_boxed_functionIXadL_ZN2atL12mps_fallbackERKNS_14OperatorE"


def library(functions):
    """A block of two registrations comes first, so that its code has known addresses."""
    return Library(functions, strings=NAMES, imports=IMPORTS)


def impl(here, name, size=4):
    """`m.impl(name, …)`: the name into x1, the call."""
    return [adrp(here, 1, name), add(1, 1, name & 0xFFF), mov(0, 19), bl(here + 12, IMPL)][:size]


def test_a_wrapped_kernel():
    wrapper = BASE + 4 * 8
    code = [
        adrp(BASE, 8, wrapper),
        add(8, 8, wrapper & 0xFFF),
        str_sp(8),
        *impl(BASE + 12, 0x50000),
    ]
    (one,) = registrations(library({MPS: [*code, RET], WRAPPED: [RET]}), frozenset({"MPS"}))
    assert (one.name, one.key, one.entry) == ("abs", "MPS", wrapper)
    assert one.function == WRAPPED


def test_a_boxed_fallback_made_by_a_call():
    code = [bl(BASE, BASE + 24), *impl(BASE + 4, 0x50010), RET]
    (one,) = registrations(library({MPS: code, MADE: [RET]}), frozenset({"MPS"}))
    assert (one.name, short_name(one.function), one.entry) == ("neg.out", "mps_fallback", 0)


def test_a_boxed_fallback_by_address_held_over_two_registrations():
    boxed = BASE + 4 * 13
    code = [
        adrp(BASE, 21, boxed),
        add(21, 21, boxed & 0xFFF),
        str_sp(21),
        *impl(BASE + 12, 0x50000),
    ]
    code += [str_sp(21), *impl(BASE + 32, 0x50010), RET]
    found = list(registrations(library({MPS: code, BOXED: [RET]}), frozenset({"MPS"})))
    assert [one.name for one in found] == ["abs", "neg.out"]
    assert {short_name(one.function) for one in found} == {"mps_fallback"}


def test_a_plain_function_given_to_a_constructor():
    function = BASE + 4 * 8
    code = [adrp(BASE, 1, function), add(1, 1, function & 0xFFF), bl(BASE + 8, CONSTRUCT)]
    code += [*impl(BASE + 12, 0x50000), RET]
    name = "__ZN2atL23slow_conv2d_forward_mpsERKNS_6TensorE"
    (one,) = registrations(library({MPS: code, name: [RET]}), frozenset({"MPS"}))
    assert (one.function, one.entry) == (name, function)


@pytest.mark.parametrize("block", [[*impl(BASE, 0x50000), RET], [*impl(BASE, 0x77000), RET]])
def test_a_shape_that_is_not_known_is_an_error(block):
    with pytest.raises(ValueError, match="unknown code in the MPS block"):
        list(registrations(library({MPS: block}), frozenset({"MPS"})))


def test_blocks_of_other_keys_are_left_alone():
    other = MPS.replace("34TORCH", "36TORCH").replace("aten_MPS", "aten_HIPER")
    cold = f"{MPS}.cold.1"
    code = [*impl(BASE, 0x50000), RET]
    assert list(registrations(library({other: code, cold: code}), frozenset({"MPS"}))) == []


def test_schemas_are_found_in_registers_and_on_the_stack():
    code = [adrp(BASE, 8, 0x51000), str_sp(8), bl(BASE + 8, DEF), RET]
    assert schemas(library({DEFINITIONS: code})) == ["sin(Tensor self) -> Tensor"]
    code = [adrp(BASE, 1, 0x51000), bl(BASE + 4, DEF), RET]
    assert schemas(library({DEFINITIONS: code})) == ["sin(Tensor self) -> Tensor"]


def test_the_catch_all_names_both_functions():
    boxed = BASE + 4 * 5
    code = [adrp(BASE, 8, boxed), add(8, 8, boxed & 0xFFF), str_sp(8), bl(BASE + 12, FALLBACK), RET]
    block = "__ZN2atL31TORCH_LIBRARY_IMPL_init___MPS_1ERN5torch7LibraryE"
    assert catch_all(library({block: code, BOXED: [RET]})) == {"mps_fallback"}
    assert catch_all(library({MPS: [RET]})) == set()


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("__ZN2atL12mps_fallbackERKN3c1014OperatorHandleE", "mps_fallback"),
        (BOXED, "mps_fallback"),
        ("…XadL_ZN2at12_GLOBAL__N_112_GLOBAL__N_111wrapper_absERKNS_6TensorEEE…", "wrapper_abs"),
        (
            "…XadL_ZNS7_12_GLOBAL__N_128wrapper_MPS__linalg_solve_exESB_SB_bbEE…",
            "wrapper_MPS__linalg_solve_ex",
        ),
    ],
)
def test_short_names_of_mangled_symbols(symbol, name):
    assert short_name(symbol) == name
