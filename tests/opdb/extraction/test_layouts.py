"""Calls in other layouts hold what they held, laid out as the name says."""

from __future__ import annotations

import pytest
import torch

from opdb.build.execution.layouts import LAYOUTS, relaid


def test_every_second_element_of_twice_the_memory() -> None:
    given = torch.arange(6.0).view(2, 3)
    made = relaid([given], given, "strided")[0]
    assert torch.equal(made, given)
    assert made.stride() == (6, 2)


def test_an_offset_keeps_strides() -> None:
    given = torch.arange(6.0).view(2, 3)
    made = relaid([given], given, "offset")[0]
    assert torch.equal(made, given)
    assert (made.stride(), made.storage_offset()) == ((3, 1), 3)


def test_expanded_repeats_the_first_slice() -> None:
    given = torch.arange(6.0).view(2, 3)
    made = relaid([given], given, "expanded")[0]
    assert made.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert made.stride() == (0, 1)


@pytest.mark.parametrize(("layout", "shape"), [("empty", (0, 3)), ("0-dim", ())])
def test_shapes_change_together_or_not_at_all(layout: str, shape: tuple[int, ...]) -> None:
    a, b = torch.ones(2, 3), torch.ones(2, 3)
    made = relaid({"self": a, "other": b, "alpha": 1}, a, layout)
    assert (made["self"].shape, made["other"].shape, made["alpha"]) == (shape, shape, 1)
    assert relaid({"self": a, "index": torch.zeros(4)}, a, layout) is None


@pytest.mark.parametrize("layout", sorted(set(LAYOUTS) - {"offset"}))
def test_what_has_no_other_layout_is_left_out(layout: str) -> None:
    given = torch.tensor(1.0)
    assert relaid([given], given, layout) is None or layout == "0-dim"


def test_the_callers_tensors_are_not_shared() -> None:
    given, other = torch.ones(2, 3), torch.ones(4)
    made = relaid([given, other], given, "strided")
    made[0].zero_()
    made[1].zero_()
    assert given.sum() == 6
    assert other.sum() == 4
