"""Which releases, systems and chips an issue is about."""

from __future__ import annotations

from functools import cache
from typing import Literal

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from opdb.issues.records import Issue
from scanner.records import Target

__all__ = ["Reach", "reach", "within"]

Reach = Literal["yes", "maybe", "no"]
"""`maybe`: the target does not say which system or chip it is, or a configuration does not show
what the issue depends on."""


def within(specifiers: tuple[str, ...], version: str) -> bool:
    """Whether a version lies in one of the ranges; nightlies count."""
    return any(_parsed(text).contains(_version(version), prereleases=True) for text in specifiers)


def reach(issue: Issue, target: Target) -> Reach:
    """Whether a target is affected, as far as it is described."""
    if not within(issue.torch, target.version.partition("+")[0]):
        return "no"
    shown: Reach = "maybe" if issue.unseen else "yes"
    answers = (_system(issue, target), _chip(issue, target), shown)
    return "no" if "no" in answers else "maybe" if "maybe" in answers else "yes"


def _system(issue: Issue, target: Target) -> Reach:
    if not issue.macos:
        return "yes"
    if target.macos is None:
        return "maybe"
    return "yes" if within(issue.macos, target.macos) else "no"


def _chip(issue: Issue, target: Target) -> Reach:
    if not issue.chips:
        return "yes"
    if target.chip is None:
        return "maybe"
    family = target.chip.replace("Apple ", "").replace("-", " ").split()[0]
    return "yes" if family in issue.chips else "no"


@cache
def _parsed(text: str) -> SpecifierSet:
    return SpecifierSet(text)


@cache
def _version(text: str) -> Version:
    return Version(text)
