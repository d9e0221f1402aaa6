"""Targets that fit an output."""

from __future__ import annotations

import types

import pytest
import torch

from scanner.locate.spec import format_value
from scanner.locate.training.targets import (
    ctc_targets,
    first_tensor,
    scalar_loss,
    target_shapes,
)


def shapes(*size: int, classes_first: bool) -> list[str]:
    return [format_value(t) for t in target_shapes(torch.ones(*size), classes_first=classes_first)]


def test_classes() -> None:
    assert shapes(4, 10, classes_first=True)[:2] == ["4:int64[0,10]", "5:int64[0,10]"]
    assert shapes(4, 7, 10, classes_first=True)[:5] == [
        "4x10:int64[0,7]",
        "4x7:int64[0,10]",
        "28:int64[0,10]",
        "4:int64[0,10]",
        "4x8:int64[0,10]",
    ]
    assert shapes(4, 3, 8, 8, classes_first=True)[0] == "4x8x8:int64[0,3]"


def test_values() -> None:
    assert shapes(4, 1, classes_first=False)[:2] == [
        "4x1:float32[0.0,1.0]",
        "4:float32[0.0,1.0]",
    ]
    assert shapes(4, classes_first=False)[0] == "4:float32[0.0,1.0]"


def test_every_kind_is_tried_either_way() -> None:
    for size in ((4,), (4, 3), (2, 3, 4)):
        assert sorted(shapes(*size, classes_first=True)) == sorted(
            shapes(*size, classes_first=False)
        )
        assert len(set(shapes(*size, classes_first=True))) == len(shapes(*size, classes_first=True))


def test_main_tensor() -> None:
    small, large = torch.ones(2), torch.ones(2, 3)
    ids = torch.ones(1, 2, 3, dtype=torch.int64)
    assert first_tensor(large) is large
    assert first_tensor((small, large, ids)) is large
    assert first_tensor({"a": [small], "b": large}) is large
    assert first_tensor(types.SimpleNamespace(a=None, b=large)) is large
    assert first_tensor(ids) is None
    assert first_tensor("text") is None


LOSS = torch.ones(())


@pytest.mark.parametrize(
    ("output", "suffix"),
    [
        (LOSS, ""),
        ({"loss": LOSS}, "['loss']"),
        (types.SimpleNamespace(loss=LOSS), ".loss"),
        ((torch.ones(2), LOSS), "[1]"),
        ((LOSS, LOSS), None),
        ((torch.ones(2), None), None),
        (torch.ones(1), None),
        (torch.ones((), dtype=torch.int64), None),
        ({"loss": None}, None),
        (None, None),
    ],
)
def test_scalar_loss(output: object, suffix: str | None) -> None:
    assert scalar_loss(output) == suffix


def test_ctc() -> None:
    first, second = ctc_targets(
        torch.ones(50, 4, 29), ["labels", "input_lengths", "label_lengths"], batch=4
    )
    assert {name: format_value(value) for name, value in first.items()} == {
        "labels": "4x8:int64[1,29]",
        "input_lengths": "4:int64[50,51]",
        "label_lengths": "4:int64[8,9]",
    }
    assert second["labels"].shape[0] == 50
    assert ctc_targets(torch.ones(4, 29), ["labels"], batch=4) == []


def test_ctc_with_the_batch_in_front() -> None:
    first, _ = ctc_targets(torch.ones(4, 50, 29), ["y"], batch=4)
    assert first["y"].shape == (4, 8)


def test_ctc_on_few_steps() -> None:
    first, _ = ctc_targets(torch.ones(6, 2, 5), ["y"], batch=2)
    assert first["y"].shape == (2, 3)
