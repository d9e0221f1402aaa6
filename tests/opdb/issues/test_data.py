"""Every entry of opdb/data/issues: its configurations, its words, its ranges."""

from __future__ import annotations

import re
from functools import cache

import pytest
import torch
from packaging.version import Version

from opdb import query
from opdb.issues.book import Entry, default
from opdb.issues.calls import read_call
from opdb.issues.condition import names_in
from opdb.issues.match import applies
from opdb.issues.ranges import within
from scanner.records import Target

ANY = Target(framework="torch", version="2.9.1")
each = pytest.mark.parametrize("entry", default.entries, ids=lambda entry: entry.issue.id)

SCOPE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@cache
def arguments(op: str) -> frozenset[str]:
    """Names of the arguments of every overload that an entry names."""
    base, _, overload = op.partition(".")
    schemas = [
        schema
        for name in (base, f"{base}_")
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}")
        if not overload or schema.overload_name == overload
    ]
    return frozenset(argument.name for schema in schemas for argument in schema.arguments)


def test_ids_are_unique_and_plain() -> None:
    ids = [entry.issue.id for entry in default.entries]
    assert len(set(ids)) == len(ids)
    assert all(SCOPE.fullmatch(name) for name in ids)


@each
def test_it_applies_to_its_hits_and_spares_its_misses(entry: Entry) -> None:
    issue = entry.issue
    assert issue.hits
    assert issue.misses or not issue.condition
    assert all(applies(entry, read_call(text), ANY) for text in issue.hits)
    assert not any(applies(entry, read_call(text), ANY) for text in issue.misses)


@each
def test_its_configurations_are_of_its_ops(entry: Entry) -> None:
    issue = entry.issue
    for text in (*issue.hits, *issue.misses):
        assert entry in default.about(read_call(text).op), text


@each
def test_its_ops_exist_and_have_the_arguments_that_it_names(entry: Entry) -> None:
    issue = entry.issue
    known = set().union(*(arguments(op) for op in issue.ops))
    assert known or issue.ops == ("*",)
    named = names_in(issue.condition) if issue.condition else frozenset()
    assert named - entry.constants.keys() <= known


@each
def test_it_affects_some_release_and_not_the_one_that_cures_it(entry: Entry) -> None:
    issue = entry.issue
    affected = [release for release in query.releases() if within(issue.torch, release)]
    assert affected
    if issue.fixed_in is not None:
        assert not within(issue.torch, issue.fixed_in) or issue.macos
        assert any(Version(release) < Version(issue.fixed_in) for release in affected)


@each
def test_it_says_where_it_is_from(entry: Entry) -> None:
    issue = entry.issue
    assert issue.links or issue.evidence != "issue"
    assert issue.since
    assert issue.evidence == "issue" or issue.confidence == "verified"
    assert not issue.title.endswith(".")
