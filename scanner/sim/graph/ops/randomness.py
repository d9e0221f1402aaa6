"""Random numbers.

The distributions are the described ones; the numbers are not Apple's. They depend on the state
that host code gives and on nothing else, so runs repeat. From MPSGraphRandomOps.h.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Methods, Properties, Unsupported, dtype_named

METHODS = Methods()

_INTEGERS = 31
"""Bits of a random integer when its range is not given."""


def _generator(*content: Tensor) -> torch.Generator:
    digest = hashlib.sha256()
    for tensor in content:
        digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes())
    seed = int.from_bytes(digest.digest()[:8], "little") >> 1
    return torch.Generator().manual_seed(seed)


def _uniform(shape: Sequence[int], kind: Properties, generator: torch.Generator) -> Tensor:
    """[min, max), or [minInteger, maxInteger] for integers."""
    dtype = dtype_named(kind["dataType"])
    if not dtype.is_floating_point:
        low, high = kind.get("minInteger", 0), kind.get("maxInteger", 2**_INTEGERS - 1)
        return torch.randint(low, high + 1, shape, generator=generator).to(dtype)
    low, high = (float(kind.get(name, value)) for name, value in (("min", 0.0), ("max", 1.0)))
    draws: Tensor = torch.rand(shape, generator=generator) * (high - low) + low
    return draws.clamp(max=_below(high) if high > low else high).to(dtype)


def _below(value: float) -> float:
    bound = torch.tensor(value, dtype=torch.float32)
    return float(torch.nextafter(bound, torch.tensor(-torch.inf)))


def _normal(shape: Sequence[int], kind: Properties, generator: torch.Generator) -> Tensor:
    mean, deviation = kind.get("mean", 0.0), kind.get("standardDeviation", 1.0)
    draws: Tensor = torch.randn(shape, generator=generator) * deviation + mean
    return draws.to(dtype_named(kind["dataType"]))


def _truncated(shape: Sequence[int], kind: Properties, generator: torch.Generator) -> Tensor:
    """The normal distribution within [min, max)."""
    mean, deviation = kind.get("mean", 0.0), kind.get("standardDeviation", 1.0)
    bounds = torch.tensor([kind["min"], kind["max"]], dtype=torch.float64)
    low, high = torch.special.ndtr((bounds - mean) / deviation).tolist()
    places = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
    draws: Tensor = torch.special.ndtri(places) * deviation + mean
    return draws.clamp(kind["min"], kind["max"]).to(dtype_named(kind["dataType"]))


_DISTRIBUTIONS: tuple[Callable[[Sequence[int], Properties, torch.Generator], Tensor], ...] = (
    _uniform,
    _normal,
    _truncated,
)
"""By MPSGraphRandomDistribution."""


@METHODS.define(
    "randomTensorWithShape:descriptor:stateTensor:name:",
    "randomTensorWithShapeTensor:descriptor:stateTensor:name:",
)
def random(call: Arguments) -> tuple[Tensor, Tensor]:
    """Draws and the state after them."""
    kind, state = call.descriptor(), call.tensor("stateTensor")
    shape = call.integers(call.selector.split(":")[0])
    number = int(kind["distribution"])
    if not 0 <= number < len(_DISTRIBUTIONS):
        raise Unsupported(f"distribution {number}")
    if state.is_meta:
        return state.new_empty(shape, dtype=dtype_named(kind["dataType"])), state
    generator = _generator(state)
    draws = _DISTRIBUTIONS[number](shape, kind, generator)
    after = torch.randint(2**_INTEGERS, state.shape, generator=generator)
    return draws, after.to(state.dtype)


@METHODS.define("dropoutTensor:rate:name:")
def dropout(call: Arguments) -> Tensor:
    """Elements become 0 with probability `rate`; the others are divided by 1 − rate.

    The method has no state; here the content decides what is dropped.
    """
    tensor, rate = call.tensor("dropoutTensor"), call.number("rate")
    if tensor.is_meta or rate == 0:
        return tensor.clone()
    kept = torch.rand(tensor.shape, generator=_generator(tensor)) >= rate
    return torch.where(kept, tensor / (1 - rate), 0)
