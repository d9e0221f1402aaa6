"""Facts from execution, by tables written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from opdb import check
from opdb.simulated import Executed
from opdb.store import Store
from tests.opdb.folder import write

LACKS = (
    "NotImplementedError: The operator 'aten::unique_dim' is not currently implemented for the MPS "
    "device"
)
SIMULATIONS = [
    "#opdb.torch.simulations\tschema=1",
    "release\tmacos\tgpu\tsimulator\treference\tsamples\tcounts",
    "2.0.0\t14.5\tApple M2\tabc\ttorch 2.0.0\t3\tcalls=9,unknown=0,dtypes=2",
    "2.1.0\t14.5\tApple M2\tabc\ttorch 2.0.0\t3\tcalls=9,unknown=0,dtypes=2",
    "2.1.0\t26.2\tApple M2\tabc\ttorch 2.0.0\t3\tcalls=9,unknown=0,dtypes=2",
]
SIMULATED = [
    "#opdb.torch.simulated\tschema=1",
    "op\tdtype\tlayout\toutcome\tcalls\twaits\tlaunches\tdetail\tenvironments",
    "abs\tbool\tany\traises\t3\t-\t-\tRuntimeError: no bool\t2.0.0@14.5..2.1.0@14.5",
    "abs\tbool\tany\tnative-shader\t3\t0\t1\t-\t2.1.0@26.2..",
    "abs\tfloat32\t0-dim\tnative-graph\t1\t1\t1\t-\t2.0.0@14.5..",
    "abs\tfloat32\tany\tnative-shader\t3\t0\t1..2\t-\t2.0.0@14.5..",
    "cat\tbool\tany\traises\t3\t-\t-\tE: size N\t2.0.0@14.5..",
    f"ends\tbool\tany\traises\t1\t-\t-\t{LACKS}\t2.0.0@14.5..2.1.0@14.5",
    f"ends\tfloat32\tany\traises\t1\t-\t-\t{LACKS}\t2.0.0@14.5..",
    "ends\tbool\tany\tnative-shader\t1\t0\t1\t-\t2.1.0@26.2..",
    f"unique_dim\tbool\tany\traises\t1\t-\t-\t{LACKS}\t2.0.0@14.5..",
    f"unique_dim\tfloat32\tany\traises\t1\t-\t-\t{LACKS}\t2.0.0@14.5..",
    "cat\tfloat32\tany\traises\t3\t-\t-\tE: size N\t2.0.0@14.5..",
    "lu\tbool\tany\traises\t3\t-\t-\tLinAlgError: singular\t2.0.0@14.5..",
    "lu\tfloat32\tany\tnative-graph\t3\t0\t1\t-\t2.0.0@14.5..",
    "mm\tbool\tany\traises\t3\t-\t-\tE: size N\t2.0.0@14.5..",
    "mm\tfloat32\tany\tmixed\t4\t0\t1\tnative-shader:3,raises:1; E: size N\t2.0.0@14.5..",
    "mm\tint64\tany\traises\t3\t-\t-\tE: only floating types\t2.0.0@14.5..",
    "sort\tint64\tany\tmixed\t4\t0\t1\tnative-shader:3,raises:1; E: x\t2.1.0@14.5..",
]
SIMULATED[2:] = sorted(SIMULATED[2:])


def folder(path: Path, **changed: list[str]) -> Path:
    return write(path, **{"simulations": SIMULATIONS, "simulated": SIMULATED, **changed})


@pytest.fixture
def facts(tmp_path: Path) -> Executed:
    return Executed(Store(folder(tmp_path)))


def test_hand_made_tables_are_sound(tmp_path: Path) -> None:
    assert check.problems(folder(tmp_path)) == []


def test_without_a_macos_the_newest_simulated_one_is_meant(facts: Executed) -> None:
    found = facts.simulated("aten::abs", "bool", "2.1.0")
    assert found is not None
    assert (found.outcome, found.macos) == ("native-shader", "26.2")


def test_a_macos_counts_with_its_major_version_only(facts: Executed) -> None:
    found = facts.simulated("abs", "bool", "2.1.0", "14.1")
    assert found is not None
    assert (found.outcome, found.detail) == ("raises", "RuntimeError: no bool")
    assert facts.simulated("abs", "bool", "2.1.0", "15.5") is None


@pytest.mark.parametrize(
    ("op", "dtype", "release"),
    [("abs", "int64", "2.1.0"), ("cos", "bool", "2.1.0"), ("sort", "int64", "2.0.0")],
)
def test_what_was_not_simulated_is_no_statement(
    facts: Executed, op: str, dtype: str, release: str
) -> None:
    assert facts.simulated(op, dtype, release) is None


def test_a_release_that_was_not_simulated_is_no_statement(facts: Executed) -> None:
    assert facts.simulated("abs", "bool", "2.2.0") is None
    assert facts.dtypes("abs", "2.2.0") == ()


@pytest.mark.parametrize(("layout", "path"), [("0-dim", "graph"), ("strided", "shader")])
def test_a_layout_without_a_fact_of_its_own_is_as_any(
    facts: Executed, layout: str, path: str
) -> None:
    found = facts.simulated("abs", "float32", "2.0.0", layout=layout)
    assert found is not None
    assert found.outcome == f"native-{path}"


def test_the_cure_is_the_first_release_from_which_on_all_run(facts: Executed) -> None:
    found = facts.simulated("abs", "bool", "2.0.0")
    assert found is not None
    assert found.fixed_in == "2.1.0"


@pytest.mark.parametrize(
    ("op", "dtype", "by_dtype"),
    [
        ("abs", "bool", True),  # float32 runs
        ("abs", "float32", False),  # it runs itself
        ("cat", "bool", False),  # all raise
        ("lu", "bool", False),  # the values are the reason
        ("mm", "bool", False),  # float32 raises too, sometimes: perhaps it is the size
        ("mm", "int64", True),  # the text says that it is the type
    ],
)
def test_a_dtype_is_the_reason_where_another_one_runs(
    facts: Executed, op: str, dtype: str, by_dtype: bool
) -> None:
    found = facts.simulated(op, dtype, "2.0.0")
    assert found is not None
    assert found.by_dtype is by_dtype


def test_every_fact_about_an_op_is_listed_by_dtype(facts: Executed) -> None:
    found = facts.dtypes("aten::abs", "2.1.0", "14")
    assert [(fact.dtype, fact.layout) for fact in found] == [
        ("bool", "any"),
        ("float32", "any"),
        ("float32", "0-dim"),
    ]


def test_a_folder_without_simulations_says_nothing(tmp_path: Path) -> None:
    bare = Executed(Store(write(tmp_path)))
    assert bare.simulated("abs", "bool", "2.1.0") is None


@pytest.mark.parametrize(
    ("line", "text", "what"),
    [
        (3, "abs\tbool\tany\traises\t3\t-\t-\t-\t2.0.0@14.5", "'-' does not fit raises"),
        (3, "abs\tbool\tany\tperhaps\t3\t-\t-\t-\t2.0.0@14.5", "'perhaps' is not an outcome"),
        (3, "abs\tbool\tsquare\tunknown\t3\t-\t-\tx\t2.0.0@14.5", "'square' is not a layout"),
        (3, "abs\tbool\tany\tunknown\t0\t-\t-\tx\t2.0.0@14.5", "'0' is not a number of calls"),
        (3, "abs\tbool\tany\tunknown\t1\t?\t-\tx\t2.0.0@14.5", "is not a range"),
        (3, "abs\tbool\tany\tunknown\t1\t-\t-\tx\t2.0.0@15.5", "unknown release '2.0.0@15.5'"),
        (3, "abs\tbool\tany\tnative-shader\t3\t0\t1\t-\t2.1.0@14.5..", "two facts about abs"),
        (14, "abs\tbool\tany\tunknown\t1\t-\t-\tx\t2.0.0@14.5", "not in ascending order"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path: Path, line: int, text: str, what: str) -> None:
    changed = list(SIMULATED)
    changed[line - 1] = text
    found = check.problems(folder(tmp_path, simulated=changed))
    assert any("simulated.tsv:" in each and what in each for each in found), found


def test_an_environment_of_no_known_release_is_named(tmp_path: Path) -> None:
    changed = [*SIMULATIONS[:2], SIMULATIONS[2].replace("2.0.0\t", "1.9.0\t", 1), *SIMULATIONS[3:]]
    found = check.problems(folder(tmp_path, simulations=changed))
    assert any("1.9.0 is not a release" in each for each in found), found


def test_a_kernel_that_always_ends_in_a_missing_one_says_in_which(facts: Executed) -> None:
    found = facts.missing_callee("aten::ends", "2.0.0")
    assert found is not None
    assert found.missing == "aten::unique_dim"


@pytest.mark.parametrize(
    ("op", "release"),
    [
        ("aten::ends", "2.1.0"),  # one dtype runs
        ("aten::unique_dim", "2.0.0"),  # it lacks itself
        ("aten::cat", "2.0.0"),  # it raises something else
        ("aten::abs", "2.0.0"),
        ("aten::never_heard_of", "2.0.0"),
        ("aten::ends", "2.2.0"),  # not simulated
    ],
)
def test_other_kernels_do_not(facts: Executed, op: str, release: str) -> None:
    assert facts.missing_callee(op, release) is None
