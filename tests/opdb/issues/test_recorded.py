"""An issue is of use only if a scan records one of its ops: checked against each release's profile.

A scan never records an op that torch decomposes before it asks a backend, unless the release keeps
it whole, nor one that is rewritten into an op of MPS alone.
"""

from __future__ import annotations

from functools import cache

import pytest
import torch

from opdb import query
from opdb.issues.book import Entry, default
from opdb.issues.calls import read_call
from opdb.issues.lowered import GENERAL
from opdb.issues.match import find
from opdb.issues.ranges import within
from scanner.capture.lowering import lower
from scanner.judge.profile import profile_for
from scanner.records import OpCall, Target

each = pytest.mark.parametrize("entry", default.entries, ids=lambda entry: entry.issue.id)


@cache
def holds_of(release: str) -> frozenset[str]:
    return frozenset(profile_for(Target(framework="torch", version=release), query).holds)


@cache
def is_recorded(op: str, release: str) -> bool:
    """Whether a scan sees the op itself and judges it by its issues, in the release's profile."""
    if query.lookup(op, release).status not in {"native", "composite"}:
        return False
    if op in holds_of(release) or op.rpartition("::")[2] in GENERAL:
        return True
    kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    own = any(kernel(op, key) for key in ("CPU", "Meta", "CompositeExplicitAutograd"))
    return own or not kernel(op, "CompositeImplicitAutograd")


def seen(call: OpCall, release: str) -> OpCall | None:
    lowered = lower(call, holds_of(release))
    return lowered if is_recorded(lowered.op, release) else None


def flagged(entry: Entry, text: str, release: str) -> bool:
    """Whether the entry is found for what a scan records of a configuration."""
    call = seen(read_call(text), release)
    if call is None:
        return False
    target = Target(framework="torch", version=release)
    return entry.issue.id in {match.issue.id for match in find(default, call, target)}


@each
def test_some_affected_release_records_a_configuration_that_it_applies_to(entry: Entry) -> None:
    issue = entry.issue
    affected = [release for release in query.releases() if within(issue.torch, release)]
    assert any(flagged(entry, text, release) for release in affected for text in issue.hits)


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("imag(self=complex64[4])", "2.9.1"),  # views
        ("lstm.input(input=float32[3,2,4], hx=[float32[1,2,4]], params=[float32[16,4]])", "2.9.1"),
        ("cumsum(self=int64[4], dim=0)", "1.13.1"),  # no kernel
    ],
)
def test_what_is_decomposed_or_lacking_is_not_recorded(text: str, release: str) -> None:
    assert seen(read_call(text), release) is None


CONVOLUTION = (
    "convolution(input={0}, weight={1}, bias=None, stride=[1,1], padding=[0,0], dilation=[1,1], "
    "transposed={2}, output_padding=[0,0], groups=1)"
)


@pytest.mark.parametrize("transposed", [False, True])
def test_what_a_convolution_becomes_has_the_arguments_of_both(transposed: bool) -> None:
    text = CONVOLUTION.format("float32[1,2,5,5]", "float32[2,2,2,2]", transposed)
    call = lower(read_call(text), holds_of("2.9.1"))
    assert call.op.startswith("aten::_mps_convolution")
    names = {spec.name for spec in call.inputs} | call.attributes.keys()
    general = GENERAL[call.op.rpartition("::")[2]]
    assert general.names.keys() <= names
    assert general.constants["transposed"] is transposed


def test_every_hit_of_a_convolution_is_one_after_lowering_too() -> None:
    checked = 0
    for entry in default.entries:
        for text in entry.issue.hits:
            call = read_call(text)
            if call.op not in {"aten::convolution", "aten::convolution_backward"}:
                continue
            release = next(r for r in query.releases() if within(entry.issue.torch, r))
            lowered = lower(call, holds_of(release))
            target = Target(framework="torch", version=release)
            assert entry.issue.id in {m.issue.id for m in find(default, lowered, target)}
            checked += 1
    assert checked
