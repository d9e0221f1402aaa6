"""Drawn values, and how far results are off: checked by hand."""

from __future__ import annotations

import pytest
import torch

from scanner.sim.study.draw import whole_range
from scanner.sim.study.figures import Compared, figures

NAN, INF = float("nan"), float("inf")


def test_every_half_is_drawn_once() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        drawn = whole_range(dtype, 1 << 16, 0)
        assert drawn.view(torch.int16).unique().numel() == 1 << 16
    assert not torch.equal(whole_range(torch.float16, 64, 0), whole_range(torch.float16, 64, 1))


def test_floats_reach_every_magnitude_and_the_usual_range() -> None:
    drawn = whole_range(torch.float32, 3000, 0)
    assert torch.equal(drawn, whole_range(torch.float32, 3000, 0)) or drawn.isnan().any()
    finite = drawn[drawn.isfinite()].abs()
    assert float(finite.max()) > 1e30
    assert 0 < float(finite[finite > 0].min()) < 1e-30
    assert int(((finite > 1) & (finite < 10)).sum()) > 800
    assert int((finite < 1).sum()) > 900
    assert drawn[:7].isnan().sum() == 1
    assert drawn[:7].isinf().sum() == 2


@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int8", "int32", "int64", "complex64", "float64"]
)
def test_every_dtype_can_be_drawn(name: str) -> None:
    dtype = getattr(torch, name)
    drawn = whole_range(dtype, 100, 3)
    assert (drawn.dtype, drawn.shape) == (dtype, (100,))
    assert not bool((drawn == drawn[0]).all())


def test_figures_by_hand() -> None:
    """2 % off at 1; NaN against 3; infinity against 4; a subnormal reference does not count."""
    device = torch.tensor([2.0, 5.1, NAN, INF, 0.0])
    cpu = torch.tensor([2.0, 5.0, 3.0, 4.0, 1e-40])
    raised = torch.tensor([2.0, 5.0, 3.0, 4.0, 1e-40], dtype=torch.float64)
    given = {"self": torch.tensor([10.0, 11.0, 12.0, 13.0, 14.0]), "other": torch.tensor(1.0)}
    found = figures([Compared("0", device, cpu, raised)], given)
    assert found is not None
    assert (found.elements, found.differs, found.nan_differs, found.inf_differs) == (5, 4, 1, 1)
    assert found.max_rel == pytest.approx(0.02, rel=1e-6)
    assert found.cpu_max_rel == 0.0
    assert found.worst is not None
    assert (found.worst.index, found.worst.input) == ((1,), 11.0)
    assert (found.worst.device, found.worst.reference) == (pytest.approx(5.1), 5.0)


def test_only_a_nan_is_off() -> None:
    device, cpu = torch.tensor([[1.0, 2.0], [NAN, 4.0]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    found = figures([Compared("0", device, cpu, cpu.double())], {})
    assert found is not None
    assert found.worst is not None
    assert (found.max_rel, found.worst.index, found.worst.device) == (0.0, (1, 0), "nan")
    assert found.worst.input is None


def test_integers_are_held_against_the_cpu() -> None:
    device, cpu = torch.tensor([1, 2, 4]), torch.tensor([1, 2, 3])
    found = figures([Compared("0", device, cpu, None)], {})
    assert found is not None
    assert (found.differs, found.max_rel) == (1, pytest.approx(1 / 3))


def test_the_worst_output_speaks() -> None:
    one, two = torch.ones(2), torch.ones(2)
    off = Compared("1", torch.tensor([1.0, 1.5]), two, None)
    found = figures([Compared("0", one, one, None), off], {})
    assert found is not None
    assert found.worst is not None
    assert (found.elements, found.worst.output) == (4, "1")
    assert figures([Compared("0", torch.ones(0), torch.ones(0), None)], {}) is None
