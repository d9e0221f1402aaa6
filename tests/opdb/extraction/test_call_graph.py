from opdb.build.call_graph import CertainCalls, PossibleCalls
from opdb.build.control_flow import Flow
from tests.opdb.extraction.arm64 import BASE, RET, Library, bl, cbz_x0

EMPTY, COPY, CUBLAS = 0xF0000, 0xF1000, 0xF2000
IMPORTS = {
    EMPTY: "__ZN2at4_ops19empty_memory_format4callE",
    COPY: "__ZN2at4_ops5copy_10redispatchE",
    CUBLAS: "_cblas_sgemm",
}


def certain(**functions):
    library = Library(functions, imports=IMPORTS)
    return CertainCalls(library, Flow(library), ["empty.memory_format", "copy_"]).of(BASE)


def possible(**functions):
    library = Library(functions, imports=IMPORTS)
    return PossibleCalls(library, Flow(library), ["empty.memory_format", "copy_"]).of(BASE)


def test_possible_is_what_some_path_calls():
    code = [bl(BASE, EMPTY), cbz_x0(BASE + 4, BASE + 12), bl(BASE + 8, COPY), RET]
    assert possible(kernel=code) == {"empty.memory_format", "copy_"}


def test_possible_calls_are_followed_into_lambdas():
    helper = BASE + 8
    functions = {
        "__ZN2at6native6kernelE": [bl(BASE, helper), RET],
        "__ZZN2at6native6kernelENK3$_0clEv": [bl(helper, COPY), RET],
    }
    assert possible(**functions) == {"copy_"}
    assert certain(**functions) == frozenset()


def test_dispatcher_calls_are_named_as_overloads():
    code = [bl(BASE, EMPTY), bl(BASE + 4, CUBLAS), bl(BASE + 8, COPY), RET]
    assert certain(kernel=code) == {"empty.memory_format", "copy_"}


def test_only_what_is_always_called():
    code = [bl(BASE, EMPTY), cbz_x0(BASE + 4, BASE + 12), bl(BASE + 8, COPY), RET]
    assert certain(kernel=code) == {"empty.memory_format"}


def test_functions_of_namespace_at_are_followed():
    helper = BASE + 8
    functions = {
        "__ZN2at6native6kernelE": [bl(BASE, helper), RET],
        "__ZN2at6native6helperE": [bl(helper, COPY), RET],
    }
    assert certain(**functions) == {"copy_"}


def test_functions_of_other_namespaces_are_not():
    helper = BASE + 8
    functions = {"kernel": [bl(BASE, helper), RET], "__ZN3c106helperE": [bl(helper, COPY), RET]}
    assert certain(**functions) == frozenset()


def test_recursion_ends():
    code = [bl(BASE, BASE), bl(BASE + 4, COPY), RET]
    assert certain(**{"__ZN2at6kernelE": code}) == {"copy_"}
