"""The YAML reader: on entries written by hand, against torchgen, and against the data."""

import pytest

from opdb import database, installed, store, tables
from opdb.native_functions import declared, load
from opdb.store import default

ENTRIES = [
    {"func": "flip(Tensor self) -> Tensor"},
    {"func": "no_kernel(Tensor self) -> Tensor", "dispatch": {}},
    {"func": "by_hand(Tensor self) -> Tensor", "manual_kernel_registration": True},
    {
        "func": "add.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "structured": True,
        "ufunc_inner_loop": {"Generic": "add (AllAndComplex, BFloat16)"},
        "dispatch": {"SparseCUDA, MTIA": "add_out", "MPS": "add_out_mps"},
    },
    {
        "func": "add.Tensor(Tensor self, Tensor other) -> Tensor",
        "structured_delegate": "add.out",
        "dispatch": {"SparseCPU": "add_sparse"},
    },
    {
        "func": "all.dims(Tensor self) -> Tensor",
        "structured_delegate": "add.out",
        "dispatch": {"CompositeExplicitAutograd": "all_default"},
    },
    {
        "func": "cat_(Tensor(a!) self) -> Tensor(a!)",
        "dispatch": {"CompositeExplicitAutograd": "cat_"},
        "autogen": "cat, cat.out",
    },
    {
        "func": "relu(Tensor self) -> Tensor",
        "dispatch": {"CPU": "relu", "MPS": "relu_mps"},
    },
    {
        "func": "relu_(Tensor(a!) self) -> Tensor(a!)",
        "dispatch": {"CPU": "relu_"},
        "autogen": "relu.out",
    },
    {"func": "pool(Tensor self) -> Tensor", "tags": "core", "autogen": "pool.out"},
    {"func": "poll(Tensor self) -> Tensor", "tags": ["other"], "autogen": "poll.out"},
]

OUT = {"CPU", "CUDA", "SparseCUDA", "MTIA", "MPS"}
EXPECTED = {
    "flip": ("implicit", set(), ""),
    "no_kernel": ("none", set(), ""),
    "by_hand": ("none", set(), ""),
    "add.out": ("none", OUT, ""),
    "add.Tensor": ("nonfunctional", OUT | {"SparseCPU"}, "add.out"),
    "all.dims": ("nonfunctional", OUT, "add.out"),
    "cat_": ("explicit", set(), ""),
    "cat": ("explicit", set(), "cat_"),
    "cat.out": ("explicit", set(), "cat"),
    "relu": ("none", {"CPU", "MPS"}, ""),
    "relu_": ("none", {"CPU"}, ""),
    "relu.out": ("explicit", set(), "relu"),
    "pool": ("implicit", set(), ""),
    "pool.out": ("explicit", set(), "pool"),
    "poll": ("implicit", set(), ""),
}


def test_the_rules_of_the_code_generator():
    found = declared(ENTRIES)
    assert {f.name: (f.composite, set(f.backends), f.delegate) for f in found.values()} == EXPECTED


def test_something_else_than_a_list_of_functions_is_an_error(tmp_path):
    file = tmp_path / "native_functions.yaml"
    file.write_text("- name: add\n", "utf-8")
    with pytest.raises(ValueError, match="not a list of native functions"):
        load(file)


@pytest.fixture(scope="module")
def here():
    path = installed.yaml_path()
    assert path is not None, "these tests need the development environment, with torch installed"
    return declared(load(path))


@pytest.fixture(scope="module")
def release():
    version = installed.version().partition("+")[0]
    assert version in default.places
    return version


def test_the_installed_yaml_is_read_as_torchgen_reads_it(here):
    from torchgen.gen import parse_native_yaml
    from torchgen.model import DispatchKey

    path = installed.yaml_path()
    parsed = parse_native_yaml(str(path), str(path.parent / "tags.yaml"))
    functions = {str(function.func.name): function for function in parsed.native_functions}
    assert here.keys() == functions.keys()
    kinds = {"CompositeImplicitAutograd": "implicit", "CompositeExplicitAutograd": "explicit"}
    for key, kind in kinds.items():
        index = parsed.backend_indices[DispatchKey.parse(key)]
        theirs = {
            name
            for name, function in functions.items()
            # A structured variant has a kernel that goes before those of the two other kinds.
            if index.has_kernel(function) and function.structured_delegate is None
        }
        assert {name for name, fact in here.items() if fact.composite == kind} == theirs


def _data(table, release):
    place = store.default.places[release]
    return {span.op: span.values for span in store.default.all(table) if span.holds(place)}


def test_the_installed_yaml_agrees_with_the_data_about_composite_kernels(here, release):
    ops = _data(tables.OPS, release)
    by_hand = {"get_gradients"} | {
        f"quantized_{cell}.{form}{legacy}"
        for cell in ("gru", "lstm")
        for form in ("data", "input")
        for legacy in ("", "_legacy")
    }
    assert ops.keys() - here.keys() == by_hand  # defined in C++ only
    assert here.keys() <= ops.keys()
    composite = {name: ops[name][0] for name in here if ops[name][0] != "raises"}
    assert composite == {name: here[name].composite for name in composite}
    raises = {name for name in here if ops[name][0] == "raises"}
    assert {here[name].composite for name in raises} == {"explicit"}


def test_generated_kernels_always_call_what_the_yaml_says(here, release):
    ops = _data(tables.OPS, release)
    named = {name: fact.delegate for name, fact in here.items() if fact.delegate}
    assert len(named) > 900
    missing = {name for name, called in named.items() if called not in ops[name][1].split(",")}
    # The first two have overloads that the YAML pairs otherwise; the kernel of the last is written
    # by hand and does nothing for an empty tensor.
    assert missing == {"bernoulli.float_out", "normal.out", "rrelu_with_noise_functional"}


def test_the_installed_yaml_agrees_with_the_data_about_mps(here, release):
    declared_for_mps = {name for name, fact in here.items() if "MPS" in fact.backends}
    registered = set(database.registered(release, "MPS"))
    assert declared_for_mps < registered
    assert registered - declared_for_mps == set(database.by_hand("MPS")) | {
        "linalg_svd",
        "linalg_svd.U",
    }


def test_the_installed_yaml_agrees_with_the_data_about_the_cpu(here, release):
    ops = _data(tables.OPS, release)
    theirs = {name for name, values in ops.items() if values[2] == "cpu"}
    ours = {name for name, fact in here.items() if "CPU" in fact.backends}
    assert ours - theirs == set()
    assert {name for name in theirs - ours if not name.startswith("quantized_")} == set()
