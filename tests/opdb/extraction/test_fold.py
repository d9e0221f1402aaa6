"""From observed calls to facts, by observations written by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opdb.build.__main__ import main
from opdb.build.execution.build import DTYPES, environments, observed, tables_of
from opdb.build.execution.build import Environment as Env
from opdb.build.execution.fold import fold, normalised
from opdb.build.execution.observation import Header, Observation, read, write
from scanner.errors import DataError

HEADER = Header(
    release="2.9.1",
    macos="26.2",
    gpu="Apple M2",
    dtype="int64",
    samples=3,
    simulator="abc",
    wheel="0" * 64,
    reference="2.13.0",
)


def seen(outcome: str = "native-shader", **other: Any) -> Observation:
    given: dict[str, Any] = {"entry": "abs", "op": "aten::abs", "dtype": "int64", "launches": 1}
    return Observation(**(given | {"outcome": outcome, "path": outcome} | other))


def raising(text: str = "no", **other: Any) -> Observation:
    return seen("raises", error="RuntimeError", message=text, launches=0, **other)


def test_a_dtype_raises_only_where_every_ordinary_call_does() -> None:
    assert list(fold([raising(), raising()])) == [
        ("abs", "int64", "any", "raises", "2", "-", "-", "RuntimeError: no")
    ]
    assert list(fold([raising(), seen(), seen()])) == [
        (
            "abs",
            "int64",
            "any",
            "mixed",
            "3",
            "0",
            "1",
            "native-shader:2,raises:1; RuntimeError: no",
        )
    ]


def test_what_could_not_be_executed_keeps_a_dtype_from_raising() -> None:
    (fact,) = fold([raising(), seen("unknown", message="not executable: x")])
    assert fact[3] == "mixed"
    assert fact[-1] == "raises:1,unknown:1; RuntimeError: no"


def test_empty_and_wide_calls_are_not_ordinary() -> None:
    (fact,) = fold([raising(), seen(empty=True, launches=0), seen(wide=True)])
    assert fact[3:5] == ("raises", "1")


def test_an_empty_call_that_raises_where_others_run_has_a_fact_of_its_own() -> None:
    facts = list(fold([seen(), raising(empty=True)]))
    assert [(fact[2], fact[3]) for fact in facts] == [("any", "native-shader"), ("empty", "raises")]


@pytest.mark.parametrize(
    ("relaid", "told"), [("native-shader", []), ("native-graph", [("strided", "native-graph")])]
)
def test_a_layout_is_named_only_where_it_changes_the_outcome(
    relaid: str, told: list[tuple[str, str]]
) -> None:
    facts = list(fold([seen(), seen(relaid, layout="strided")]))
    assert [(fact[2], fact[3]) for fact in facts] == [("any", "native-shader"), *told]


def test_waits_and_launches_are_ranges_over_the_calls_that_ran() -> None:
    (fact,) = fold([seen(waits=2), seen(launches=0, graphs=3), raising()])
    assert fact[5:7] == ("0..2", "1..3")


def test_a_fallback_names_what_the_cpu_computed() -> None:
    (fact,) = fold([seen("fallback", fallbacks=("LAPACK dsyevd",))])
    assert fact[-1] == "LAPACK dsyevd"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dim 3 of [2, 5] at 0x7fff12", "dim N of [N, N] at N"),
        ("float32 and conv2d stay. More", "float32 and conv2d stay"),
        ("a\tb\nsecond line", "a b"),
        ("by -1.5e-3", "by N"),
    ],
)
def test_messages_lose_numbers_and_addresses(text: str, expected: str) -> None:
    assert normalised(text) == expected


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_a_normalised_message_fits_a_column(text: str) -> None:
    found = normalised(text)
    assert "\t" not in found
    assert "\n" not in found
    assert normalised(found) == found


def test_observations_survive_their_file(tmp_path: Any) -> None:
    rows = [seen(), raising("x", fallbacks=("a",), findings=("b",))]
    write(tmp_path / "a" / "int64.jsonl", HEADER, rows)
    assert read(tmp_path / "a" / "int64.jsonl") == (HEADER, rows)


def test_a_damaged_file_says_what_to_do(tmp_path: Any) -> None:
    path = tmp_path / "int64.jsonl"
    path.write_text("{}\n")
    with pytest.raises(DataError, match=r"int64\.jsonl: cannot be read") as caught:
        read(path)
    assert "Delete it" in caught.value.remedy


def test_a_release_is_replaced_and_others_are_kept(tmp_path: Any) -> None:
    old, new = Env("2.8.0", "15.5"), Env("2.9.1", "26.2")
    both = tables_of(tmp_path, [(new, [(HEADER, [seen()])]), (old, [(HEADER, [seen()])])])
    assert both["simulated.tsv"].splitlines()[2:] == [
        "abs\tint64\tany\tnative-shader\t1\t0\t1\t-\t2.8.0@15.5.."
    ]
    for name, text in both.items():
        (tmp_path / name).write_text(text, "utf-8")
    again = tables_of(tmp_path, [(new, [(HEADER, [raising()])])])
    assert again["simulated.tsv"].splitlines()[2:] == [
        "abs\tint64\tany\tnative-shader\t1\t0\t1\t-\t2.8.0@15.5",
        "abs\tint64\tany\traises\t1\t-\t-\tRuntimeError: no\t2.9.1@26.2..",
    ]
    assert tables_of(tmp_path, [])["simulated.tsv"] == both["simulated.tsv"]


def test_kept_sweeps_are_read_as_they_are(tmp_path: Any) -> None:
    assert "int64" in DTYPES
    write(tmp_path / "2.9.1@26.2" / "int64.jsonl", HEADER, [seen()])
    found = observed(Env("2.9.1", "26.2"), tmp_path, pytest.fail, as_is=True)
    assert found == [(HEADER, [seen()])]


def test_nothing_kept_is_an_error(tmp_path: Any) -> None:
    with pytest.raises(DataError, match="no sweep is kept"):
        observed(Env("2.9.1", "26.2"), tmp_path, pytest.fail, as_is=True)


def test_check_compares_one_release_and_leaves_others(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    data, kept = tmp_path / "data", tmp_path / "kept"
    write(kept / "2.9.1@26.2" / "int64.jsonl", HEADER, [seen()])
    asked = ["torch-sim", "--release", "2.9.1", "--as-is", "--observations", str(kept)]
    asked += ["--data", str(data)]
    assert main(asked) == 0
    assert main([*asked, "--check"]) == 0
    write(kept / "2.9.1@26.2" / "int64.jsonl", HEADER, [raising()])
    assert main([*asked, "--check"]) == 1
    assert "simulated.tsv: differs from what was executed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("release", "macos"),
    [("2.0.1", "13.5"), ("2.5.1", "14.5"), ("2.8.0", "15.5"), ("2.9.1", "26.2")],
)
def test_a_release_is_swept_on_the_macos_of_its_time(release: str, macos: str) -> None:
    assert environments([release], []) == [Env(release, macos)]
    assert environments([release], ["14.0"]) == [Env(release, "14.0")]
