"""The bench that holds coverage against PyTorch's expected failures, on small cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
import pytest

from bench import agreement
from bench.agreement import Cause, Comparison, Disagreement, Score
from opdb.coverage import Row
from opdb.upstream import Expected, _Line
from scanner.records import Status


def row(name: str, status: Status, dtype: str = "float32", direction: str = "forward") -> Row:
    return Row(
        name=name,
        variant="",
        dtype=dtype,
        direction=direction,
        status=status,
        evidence=None if status == "unknown" else "database",
        chain=(),
    )


def known(lines: Mapping[str, list[tuple[str, str, str]]]) -> Expected:
    return Expected({key: [_Line(*line) for line in found] for key, found in lines.items()})


def because(
    *entries: str,
    kind: Literal["upstream-wrong", "test-artefact", "ours"] = "test-artefact",
    releases: tuple[str, ...] = ("2.15.0",),
    dtypes: tuple[str, ...] = (),
) -> Cause:
    return Cause(
        entries=entries, releases=releases, dtypes=dtypes, kind=kind, cause="so", verified="seen"
    )


def found(*differences: tuple[str, str, Cause | None]) -> list[Comparison]:
    """Comparisons of releases with float32 rows that disagree."""
    names = dict.fromkeys(release for release, _, _ in differences)
    return [
        Comparison(
            name,
            {},
            {},
            [
                Disagreement(name, "only theirs", row(entry, "native"), cause)
                for release, entry, cause in differences
                if release == name
            ],
        )
        for name in names
    ]


def test_ratios() -> None:
    score = Score(both=3, only_ours=1, only_theirs=2, neither=10)
    assert (score.precision, score.recall) == (0.75, 0.6)
    assert Score(0, 0, 0, 5).recall == 0


@pytest.mark.parametrize(
    ("status", "theirs", "kind"),
    [
        ("unsupported", "xfail", "both"),
        ("wrong", "xfail", "both"),
        ("unsupported", "pass", "only ours"),
        ("native", "xfail", "only theirs"),
        ("fallback", "xfail", "only theirs"),
        ("fallback", "pass", "neither"),
        ("unknown", "xfail", "unknown"),
        ("unsupported", "skip", "skip"),
        ("unknown", "skip", "skip"),
    ],
)
def test_who_calls_a_row_positive(status: Status, theirs: str, kind: str) -> None:
    assert agreement.classify(row("add", status), theirs) == kind


def test_a_skip_outweighs_a_failure_and_gradients_are_run_with_the_forward() -> None:
    tests = known(
        {
            "add": [("forward", "xfail", "float32"), ("gradient", "skip", "*")],
            "mul": [("gradient", "xfail", "float32")],
            "*": [("forward", "xfail", "float64")],
            "own:div": [("forward", "xfail", "int8")],
        }
    )
    assert tests.of("add", "", "float32", "forward") == "xfail"
    assert tests.of("add", "", "float32", "gradient") == "skip"
    assert tests.of("mul", "", "float32", "forward") == "pass"
    assert tests.of("mul", "", "float32", "gradient") == "xfail"
    assert tests.of("sub", "", "float64", "forward") == "xfail"
    assert tests.of("mul", "", "float64", "forward") == "pass"
    assert tests.of("div", "", "int8", "forward") == "xfail"
    assert tests.of("div", "", "bfloat16", "gradient") == "skip"


def test_only_a_cause_that_speaks_of_the_row_excludes_it() -> None:
    tests = known({"add": [("forward", "xfail", "*")]})
    mine = row("add", "native")

    def kind(cause: Cause) -> str:
        return agreement.judged("2.15.0", mine, tests, [cause])[0]

    assert kind(because("add.")) == "excluded"
    assert kind(because("add.", kind="ours")) == "only theirs"
    assert kind(because("add.other")) == "only theirs"
    assert kind(because("add.", releases=("2.9.1",))) == "only theirs"
    assert kind(because("add.", dtypes=("int8",))) == "only theirs"
    agreeing = agreement.judged("2.15.0", row("add", "wrong"), tests, [because("add.")])
    assert agreeing == ("both", None)


def test_causes_entries_and_releases_that_fit_nothing_are_named() -> None:
    cause = because("add.", "mul.", releases=("2.14.1", "2.15.0"))
    both = found(("2.14.1", "add", cause), ("2.15.0", "add", cause))
    assert agreement.unused([cause], both) == ["mul. (so)"]
    other = found(("2.14.1", "add", cause), ("2.15.0", "sub", None))
    assert agreement.unused([cause], other) == ["add., mul. in 2.15.0", "mul. (so)"]
    fits = found(("2.14.1", "add", cause), ("2.15.0", "mul", cause))
    assert agreement.unused([cause], fits) == []


def test_entries_are_not_judged_by_some_of_their_releases() -> None:
    cause = because("add.", "mul.", releases=("2.14.1", "2.15.0"))
    assert agreement.unused([cause], found(("2.15.0", "add", cause))) == []


def test_the_page_says_what_counts_and_why() -> None:
    cause = because("add.", kind="ours")
    text = agreement.page(found(("2.15.0", "add", cause), ("2.15.0", "sub", None)))
    assert "| `add` | forward | only tests | float32 | 2.15.0 | yes | so seen |" in text
    assert "| `sub` | forward | only tests | float32 | 2.15.0 | yes | not known |" in text


def test_causes_say_how_they_are_known_unless_they_count() -> None:
    book = msgspec.toml.decode(agreement.BOOK.read_bytes(), type=agreement.Book)
    assert all(cause.verified for cause in book.cause if cause.kind != "ours")
