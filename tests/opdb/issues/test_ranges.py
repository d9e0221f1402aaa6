from __future__ import annotations

from typing import Any

import pytest

from opdb.issues.ranges import reach, within
from opdb.issues.records import Issue
from scanner.records import Target


def issue(**fields: Any) -> Issue:
    return Issue(
        id="x", title="x", ops=("mm",), effect="crash", hits=(), **{"torch": (">=2",), **fields}
    )


def target(version: str = "2.9.1", **fields: Any) -> Target:
    return Target(framework="torch", version=version, **fields)


@pytest.mark.parametrize(
    ("specifiers", "inside", "outside"),
    [
        (("<2.4",), "2.3.1", "2.4.0"),
        ((">=2.1,<2.1.2",), "2.1.1", "2.1.2"),
        (("<2.0", ">=2.5,<2.6"), "2.5.1", "2.4.1"),
        (("==2.9.*",), "2.9.1", "2.10.0"),
        ((">=2.14",), "2.16.0.dev20261101", "2.13.0"),
    ],
)
def test_disjoint_ranges(specifiers: tuple[str, ...], inside: str, outside: str) -> None:
    assert within(specifiers, inside)
    assert not within(specifiers, outside)


def test_a_local_part_does_not_matter() -> None:
    assert reach(issue(torch=("<2.10",)), target("2.9.1+cpu")) == "yes"


def test_systems_and_chips() -> None:
    old = issue(macos=("<15",))
    assert reach(old, target(macos="14.7")) == "yes"
    assert reach(old, target(macos="15.0")) == "no"
    assert reach(old, target()) == "maybe"
    first = issue(chips=("M1",))
    assert reach(first, target(chip="M1-Pro-16")) == "yes"
    assert reach(first, target(chip="M3")) == "no"
    assert reach(first, target()) == "maybe"
    assert reach(issue(macos=("<15",), chips=("M1",)), target(macos="15.1")) == "no"


def test_what_no_configuration_shows() -> None:
    depends = issue(unseen="an element is NaN", macos=("<15",))
    assert reach(depends, target(macos="14.7")) == "maybe"
    assert reach(depends, target(macos="15.0")) == "no"
