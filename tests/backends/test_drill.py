"""What each fault does to a result; those that kill are tested where a supervisor survives them."""

from __future__ import annotations

import pytest
import torch

from scanner.backends import drill_words
from scanner.backends.drill import DrillDevice

SQUARE = torch.arange(1.0, 17).view(4, 4)
OTHERS = "nan=aten::relu"


def run(spec: str, op: str = "aten::mul.Tensor", *args: object) -> torch.Tensor:
    result = DrillDevice(spec).call(op, args or (SQUARE.clone(), SQUARE.clone()), {})
    assert isinstance(result, torch.Tensor)
    return result


TRUTH = SQUARE * SQUARE


def test_an_op_that_no_fault_names_is_computed_as_ever() -> None:
    assert torch.equal(run(OTHERS), TRUTH)


def test_one_nan() -> None:
    result = run("nan=aten::mul.Tensor")
    assert result.isnan().sum() == 1
    assert torch.equal(result[~result.isnan()], TRUTH[~result.isnan()])


def test_nan_vanishes() -> None:
    result = run("unnan=aten::sqrt", "aten::sqrt", torch.tensor([-1.0, 4.0]))
    assert result.tolist() == [0.0, 2.0]


def test_bias_is_one_percent() -> None:
    torch.testing.assert_close(run("bias=aten::mul.Tensor"), TRUTH * 1.01)


def test_a_stale_tile_differs_in_the_last_elements_only() -> None:
    ones = torch.ones(40)
    result = run("tile=aten::clone", "aten::clone", ones)
    assert result.tolist() == [1.0] * 24 + [0.0] * 16
    zeros = run("tile=aten::clone", "aten::clone", torch.zeros(40))
    assert zeros.tolist() == [0.0] * 24 + [1.0] * 16


def test_another_dtype_with_the_same_values() -> None:
    result = run("dtype=aten::mul.Tensor")
    assert result.dtype is torch.float64
    assert torch.equal(result, TRUTH.double())


def test_other_strides_with_the_same_values() -> None:
    result = run("stride=aten::mul.Tensor")
    assert result.stride() == (8, 2)
    assert torch.equal(result, TRUTH)


def test_in_place_op_that_does_not_write() -> None:
    kept = SQUARE.clone()
    result = run("noinplace=aten::mul_.Tensor", "aten::mul_.Tensor", kept, SQUARE.clone())
    assert result is kept
    assert torch.equal(kept, SQUARE)
    assert torch.equal(run("noinplace=aten::mul.Tensor"), TRUTH)


def test_out_variant_that_does_not_write() -> None:
    out = torch.full((4, 4), 7.0)
    device = DrillDevice("noinplace=aten::mul.out")
    assert device.call("aten::mul.out", (SQUARE, SQUARE), {"out": out}) is out
    assert out.eq(7).all()


def test_gradients_are_half_as_large_again() -> None:
    leaf = SQUARE.clone().requires_grad_()
    result = run("grad=aten::mul.Tensor", "aten::mul.Tensor", leaf, torch.full((4, 4), 2.0))
    assert torch.equal(result, SQUARE * 2)
    (gradient,) = torch.autograd.grad(result.sum(), leaf)
    assert gradient.eq(3).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.complex64])
def test_noise_is_three_units_in_the_last_place(dtype: torch.dtype) -> None:
    truth = torch.linspace(1, 2, 50).to(dtype)
    result = run("noise=aten::clone", "aten::clone", truth)
    error = (result - truth).abs()
    step = torch.finfo(dtype).eps
    assert error.max() > 0
    # From 2 on, a unit is twice as large; in complex numbers both parts are off.
    assert error.max() <= 3 * 2 * step * 2**0.5


def test_noise_leaves_zeros_and_special_values() -> None:
    special = torch.tensor([0.0, torch.inf, -torch.inf, torch.nan])
    result = run("noise=aten::clone", "aten::clone", special)
    assert torch.equal(result.nan_to_num(5), special.nan_to_num(5))


def test_values_are_spoilt_in_place_so_aliases_see_it() -> None:
    kept = SQUARE.clone()
    result = run("bias=aten::mul_.Tensor", "aten::mul_.Tensor", kept, torch.ones(4, 4))
    assert result is kept
    torch.testing.assert_close(kept, SQUARE * 1.01)


def test_an_expanded_result_is_replaced() -> None:
    result = run("nan=aten::expand", "aten::expand", torch.ones(3, 1), [3, 4])
    assert result.isnan().sum() == 1


def test_spoiling_leaves_autograd_working() -> None:
    leaf = SQUARE.clone().requires_grad_()
    result = run("noise=aten::exp", "aten::exp", leaf)
    (gradient,) = torch.autograd.grad(result.sum(), leaf)
    torch.testing.assert_close(gradient, SQUARE.exp())


def test_three_times_as_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 11.0, 12.5, 13.5, 99.0])
    monkeypatch.setattr(drill_words.time, "perf_counter", lambda: next(clock))
    assert drill_words.slowly(lambda: "result") == "result"
    # Ran from 10 to 11, so it is held until 13: the clock has been read up to 13.5.
    assert next(clock) == 99.0


def test_words() -> None:
    with pytest.raises(NotImplementedError, match=r"'aten::mul.Tensor' is not currently impl"):
        run("raise=aten::mul.Tensor")
    with pytest.raises(torch.OutOfMemoryError, match="MPS backend out of memory"):
        run("oom=aten::mul.Tensor")
    with pytest.warns(UserWarning, match=r"'aten::mul.Tensor' is not currently supported on the"):
        run("fallback=aten::mul.Tensor")


def test_only_the_nth_call() -> None:
    device = DrillDevice("raise=aten::mul.Tensor@2")
    device.call("aten::mul.Tensor", (SQUARE, SQUARE), {})
    device.call("aten::add.Tensor", (SQUARE, SQUARE), {})
    with pytest.raises(NotImplementedError):
        device.call("aten::mul.Tensor", (SQUARE, SQUARE), {})
    device.call("aten::mul.Tensor", (SQUARE, SQUARE), {})


def test_faults_add_up() -> None:
    result = run("dtype=aten::mul.Tensor,nan=aten::mul.Tensor")
    assert result.dtype is torch.float64
    assert result.isnan().sum() == 1


def test_facts_never_look_like_a_real_device() -> None:
    facts = DrillDevice(OTHERS).facts
    assert facts.backend == "drill"
    assert facts.details == {"faults": OTHERS}
