"""Random ops: two generators give different numbers, so what is tested is the distribution.

Moments are held against their exact values within six standard errors, so that a right generator
fails about once in 10⁹ tests; a wrong scale of 1 % shows from about 10⁵ elements on, a wrong range,
a wrong support or a dropped element at once. Bounds allow for rounding in half precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from scanner.probe.schema import Schema
from scanner.records import OpCall

__all__ = ["distribution_faults"]

_Z = 6.0


@dataclass(frozen=True)
class Sample:
    """One random run: arguments as given, outputs as the device returned them."""

    schema: Schema
    call: OpCall
    tensors: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]

    def given(self, name: str, default: Any = None) -> Any:
        """A tensor argument in double precision, an attribute, or the default."""
        if name in self.tensors:
            return self.tensors[name].double()
        value = self.call.attributes.get(name)
        if isinstance(value, str):
            return float(value)
        return default if value is None else value

    @property
    def output(self) -> Tensor:
        """The only output, in its own dtype."""
        return next(iter(self.outputs.values()))

    @property
    def values(self) -> Tensor:
        """The only output in double precision; complex numbers as two reals each."""
        output = self.output
        return (torch.view_as_real(output) if output.is_complex() else output).double()


Test = Callable[[Sample], Iterator[str]]


def distribution_faults(sample: Sample) -> list[str] | None:
    """What is wrong with the sample, or None when there is no test for the op."""
    test = _TESTS.get(sample.schema.family)
    if test is None:
        return None
    if not sample.outputs or not sample.output.numel():
        return []
    return list(test(sample))


def _moments(values: Tensor, mean: Any, deviation: Any, kurtosis: float = 3.0) -> Iterator[str]:
    """Mean and standard deviation, standardised by the expected ones, element by element.

    The term in 1/n is for the tails of single draws: an exponential exceeds 26 deviations in one
    of 10¹¹.
    """
    standard = (values - mean) / deviation
    count = standard.numel()
    rough = 2.0**-7  # rounding in half precision
    average = float(standard.mean())
    if not abs(average) <= _Z / math.sqrt(count) + 20 / count + rough:
        yield f"the mean is off by {average:.3g} standard deviations over {count} elements"
    spread = float(standard.square().mean())
    allowed = _Z * math.sqrt(max(kurtosis - 1, 0.1) / count) + 2 * rough
    # Heavy tails make small samples of squares erratic: they are tested from 100 elements on.
    if count >= 100 and not abs(spread - 1) <= allowed:
        yield f"the variance is {spread:.3g} times what it should be over {count} elements"


def _within(values: Tensor, low: float, high: float) -> Iterator[str]:
    outside = int(((values < low) | (values > high) | values.isnan()).sum())
    if outside:
        yield f"{outside} of {values.numel()} elements are outside [{low:g}, {high:g}]"


def _varied(values: Tensor) -> Iterator[str]:
    """Continuous values repeat only by rounding, and are hardly ever zero."""
    count = values.numel()
    zeros = int((values == 0).sum())
    # Bfloat16 rounds one in 256 uniform numbers to zero.
    if zeros > 3 + count / 128 + _Z * math.sqrt(count / 128):
        yield f"{zeros} of {count} elements are zero"
    if bool(values.isnan().any()):
        yield f"{int(values.isnan().sum())} of {count} elements are NaN"
    if count >= 16 and int(values.unique().numel()) < 8:
        yield f"only {int(values.unique().numel())} different values among {count} elements"


def _normal(s: Sample) -> Iterator[str]:
    mean, std = s.given("mean", 0.0), s.given("std", 1.0)
    if s.output.is_complex():
        std = std / math.sqrt(2)
    yield from _varied(s.values)
    yield from _moments(s.values, mean, std)


def _uniform(s: Sample) -> Iterator[str]:
    low, high = float(s.given("from", 0.0)), float(s.given("to", 1.0))
    yield from _within(s.values, low, high)
    yield from _varied(s.values)
    yield from _moments(s.values, (low + high) / 2, (high - low) / math.sqrt(12), 1.8)


def _integers(s: Sample) -> Iterator[str]:
    low, high = int(s.given("low", s.given("from", 0))), s.given("high", s.given("to"))
    if high is None:
        if s.output.dtype != torch.bool:
            yield from _varied(s.values)
        return
    yield from _within(s.values, low, int(high) - 1)
    if high - low > 1:
        yield from _moments(s.values, (low + high - 1) / 2, math.sqrt(((high - low) ** 2 - 1) / 12))


def _permutation(s: Sample) -> Iterator[str]:
    values = s.output.long()
    if not torch.equal(values.sort().values, torch.arange(values.numel())):
        yield f"it is no permutation of 0 … {values.numel() - 1}"


def _binary(s: Sample) -> Iterator[str]:
    """`p` in a tensor decides each element; `bernoulli(self)` takes its chances from `self`."""
    chance = s.given("p")
    if chance is None:
        chance = s.tensors["self"].double()
    chance = torch.as_tensor(chance, dtype=torch.float64)
    yield from _two_valued(s.values, chance)


def _two_valued(values: Tensor, chance: Tensor) -> Iterator[str]:
    other = int(((values != 0) & (values != 1)).sum())
    if other:
        yield f"{other} elements are neither 0 nor 1"
    chance = chance.expand(values.shape)
    expected, variance = float(chance.sum()), float((chance * (1 - chance)).sum())
    if not abs(float(values.sum()) - expected) <= _Z * math.sqrt(variance) + 6:
        yield f"{float(values.sum()):g} ones of {values.numel()} where {expected:.1f} are expected"


def _exponential(s: Sample) -> Iterator[str]:
    rate = float(s.given("lambd", 1.0))
    yield from _within(s.values, 0.0, math.inf)
    yield from _varied(s.values)
    yield from _moments(s.values, 1 / rate, 1 / rate, 9.0)


def _geometric(s: Sample) -> Iterator[str]:
    p = float(s.given("p"))
    yield from _within(s.values, 1.0, math.inf)
    if 0 < p < 1:
        yield from _moments(s.values, 1 / p, math.sqrt(1 - p) / p, 9.0 + p**2)


def _cauchy(s: Sample) -> Iterator[str]:
    """No moments exist: half of the values lie within one scale of the median."""
    median, scale = float(s.given("median", 0.0)), float(s.given("sigma", 1.0))
    yield from _varied(s.values)
    inside = ((s.values - median).abs() < scale).double()
    yield from _two_valued(inside, torch.tensor(0.5, dtype=torch.float64))
    above = (s.values > median).double()
    yield from _two_valued(above, torch.tensor(0.5, dtype=torch.float64))


def _log_normal(s: Sample) -> Iterator[str]:
    yield from _within(s.values, 0.0, math.inf)
    yield from _varied(s.values)
    yield from _moments(s.values.clamp(min=1e-30).log(), s.given("mean", 1.0), s.given("std", 2.0))


def _poisson(s: Sample) -> Iterator[str]:
    rate = s.tensors["self"].double()
    yield from _within(s.values, 0.0, math.inf)
    if bool((rate > 0).all()):
        yield from _moments(s.values, rate, rate.sqrt(), 3 + float((1 / rate).max()))


def _binomial(s: Sample) -> Iterator[str]:
    count, p = s.tensors["count"].double(), s.tensors["prob"].double()
    beyond = int((s.values > count).sum() + (s.values < 0).sum())
    if beyond:
        yield f"{beyond} elements are outside [0, count]"
    deviation = (count * p * (1 - p)).sqrt()
    known = (deviation > 0.5).expand(s.values.shape)
    if bool(known.any()):
        mean, spread = (count * p).expand_as(s.values)[known], deviation.expand_as(s.values)[known]
        yield from _moments(s.values[known], mean, spread, 8.0)


def _multinomial(s: Sample) -> Iterator[str]:
    weights = s.tensors["self"].double()
    yield from _within(s.values, 0, weights.shape[-1] - 1)
    index = s.output.long().clamp(0, weights.shape[-1] - 1)
    impossible = int((weights.gather(-1, index) <= 0).sum())
    if impossible:
        yield f"{impossible} draws of categories whose weight is zero"
    if s.given("replacement", False):
        mean = (weights / weights.sum(-1, keepdim=True)).gather(-1, index)
        if bool((mean == 1).all()):
            return
        yield from _frequencies(weights, index)
    elif index.shape[-1] > 1 and bool((index.sort(-1).values.diff() == 0).any()):
        yield "a category is drawn twice without replacement"


def _frequencies(weights: Tensor, index: Tensor) -> Iterator[str]:
    weights, index = weights.reshape(-1, weights.shape[-1]), index.reshape(-1, index.shape[-1])
    chance = weights / weights.sum(-1, keepdim=True)
    counts = torch.zeros_like(chance).scatter_add_(-1, index, torch.ones_like(index).double())
    draws = index.shape[-1]
    deviation = (draws * chance * (1 - chance)).sqrt()
    off = ((counts - draws * chance).abs() > _Z * deviation + 3).sum()
    if int(off):
        yield f"{int(off)} categories are drawn too often or too seldom"


def _gamma(s: Sample) -> Iterator[str]:
    shape = s.tensors["self"].double()
    yield from _within(s.values, 0.0, math.inf)
    yield from _moments(s.values, shape, shape.sqrt(), 3 + float((6 / shape).max()))


def _dirichlet(s: Sample) -> Iterator[str]:
    yield from _within(s.values, 0.0, 1.0)
    rows = s.values.sum(-1)
    if not bool(((rows - 1).abs() < 2e-2).all()):
        yield f"rows do not add up to one, but to {float(rows.min()):g} … {float(rows.max()):g}"


def _dropout(s: Sample) -> Iterator[str]:
    """Kept elements are scaled by 1/(1 − p), the others are zero, and the mask says which."""
    source = s.tensors.get("input", s.tensors.get("self"))
    assert source is not None
    p = float(s.given("p", 0.5))
    output, mask = s.outputs["0"].double(), s.outputs["1"].bool()
    yield from _two_valued(mask.double(), torch.tensor(1 - p, dtype=torch.float64))
    scale = 1 / (1 - p) if p < 1 else 0.0
    expected = source.double() * mask * scale
    wrong = ~torch.isclose(output, expected, rtol=2.0**-6, atol=1e-6)
    if bool(wrong.any()):
        yield f"{int(wrong.sum())} elements are not input · mask / (1 − p)"


def _leaky(s: Sample) -> Iterator[str]:
    """`rrelu`: negative elements are multiplied by a number between the two slopes."""
    source = s.tensors["self"].double()
    output = s.outputs.get("0", s.outputs.get("self"))
    assert output is not None
    low, high = float(s.given("lower", 1 / 8)), float(s.given("upper", 1 / 3))
    ratio = torch.where(source < 0, output.double() / source, low)
    yield from _within(ratio, low * 0.98, high * 1.02)
    kept = torch.where(source < 0, source, output.double())
    if not bool(torch.isclose(kept, source).all()):
        yield "positive elements are changed"


_TESTS: dict[str, Test] = {
    **dict.fromkeys(("normal", "randn", "randn_like", "normal_functional"), _normal),
    **dict.fromkeys(("uniform", "rand", "rand_like"), _uniform),
    **dict.fromkeys(("randint", "randint_like", "random"), _integers),
    "randperm": _permutation,
    "bernoulli": _binary,
    "exponential": _exponential,
    "geometric": _geometric,
    "cauchy": _cauchy,
    "log_normal": _log_normal,
    "poisson": _poisson,
    "binomial": _binomial,
    "multinomial": _multinomial,
    "_standard_gamma": _gamma,
    "_sample_dirichlet": _dirichlet,
    "native_dropout": _dropout,
    "_fused_dropout": _dropout,
    "rrelu_with_noise": _leaky,
}
"""Family → test."""
