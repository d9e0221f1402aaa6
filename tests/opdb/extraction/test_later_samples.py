"""Samples that only later releases have."""

from __future__ import annotations

import pytest

from opdb import query
from opdb.build.later_samples import later_calls
from scanner.records import Target


@pytest.mark.parametrize(("release", "refused"), [("2.14.1", False), ("2.15.0", True)])
def test_bicubic_volumes_are_refused_where_torch_takes_them(release: str, refused: bool) -> None:
    (call,) = later_calls("nn.functional.grid_sample", "", "float32")
    assert call.op == "aten::grid_sampler_3d"
    matches = query.issues(call, Target(framework="torch", version=release, macos="15"))
    assert ("grid-sample-3d-bicubic" in {match.issue.id for match in matches}) == refused


def test_other_entries_have_none() -> None:
    assert later_calls("softmax", "with_dtype", "float32") == ()
