"""Which parameters to give a forward, and with what, in the order of likelihood."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator
from typing import Any

import torch

from scanner.locate.context import Context
from scanner.locate.inference.entry import VARIADIC, Entry
from scanner.locate.inference.hints import image_sizes, sequence_lengths
from scanner.locate.inference.layer_shapes import Scale
from scanner.locate.inference.layers import Use, first_layer, first_use
from scanner.locate.inference.shapes import scales, variants
from scanner.locate.spec import Group, TensorInput, Value

__all__ = ["Choices", "Chosen"]

_MOST = 400
"""Combinations tried for one set of parameters."""
_MOST_RANKED = 20_000

Chosen = dict[str, Value]


class Choices:
    """Candidate inputs of one entry."""

    def __init__(self, context: Context, entry: Entry) -> None:
        model = entry.model
        self._entry = entry
        self._first = first_layer(model) if isinstance(model, torch.nn.Module) else None
        self._dtype = _float_dtype(model)
        self.scales = scales(
            model, entry.parameters, image_sizes(context, model), sequence_lengths(context, model)
        )

    def name_sets(self) -> Iterator[tuple[str, ...]]:
        """Which parameters to give: with the extras of the file's call, then without."""
        parameters = self._entry.parameters
        needed = self._entry.required
        optional = [n for n, p in parameters.items() if p.kind not in VARIADIC and n not in needed]
        extras = [name for name in self._entry.extras if name in optional]
        if extras:
            yield tuple(name for name in parameters if name in needed or name in extras)
        yield tuple(needed)
        if not needed:
            yield from ((name,) for name in optional[:1])
            variadic = [n for n, p in parameters.items() if p.kind is p.VAR_POSITIONAL]
            yield from ((name,) for name in variadic)

    def combinations(self, names: tuple[str, ...]) -> Iterator[tuple[tuple[int, ...], Chosen]]:
        """(rank of each value, values) without repeats; scales first, then likelihood."""
        seen: set[tuple[Value, ...]] = set()
        for scale in self.scales:
            options = [self.variants(name, scale) for name in names]
            product = itertools.product(*map(enumerate, options))
            for combination in sorted(itertools.islice(product, _MOST_RANKED), key=_likelihood):
                values = tuple(value for _, value in combination)
                if values not in seen and len(seen) < _MOST:
                    seen.add(values)
                    ranks = tuple(rank for rank, _ in combination)
                    yield ranks, dict(zip(names, values, strict=True))

    def odd_sizes(self, names: tuple[str, ...]) -> Iterator[Chosen]:
        """The likeliest values at every image size up to 256, for models that fix theirs."""
        model = self._entry.model
        modules = model.modules() if isinstance(model, torch.nn.Module) else ()
        if not any(isinstance(module, torch.nn.Conv2d) for module in modules):
            return
        for size in range(8, 257):
            scale = dataclasses.replace(self.scales[0], image=size)
            options = [self.variants(name, scale)[:1] for name in names]
            if all(options):
                yield {name: values[0] for name, values in zip(names, options, strict=True)}

    def at(self, names: tuple[str, ...], ranks: tuple[int, ...], scale: Scale) -> Chosen | None:
        """The values of these ranks at another scale, where there are as many."""
        options = [self.variants(name, scale) for name in names]
        if any(rank >= len(values) for rank, values in zip(ranks, options, strict=True)):
            return None
        chosen = [values[rank] for rank, values in zip(ranks, options, strict=True)]
        return dict(zip(names, chosen, strict=True))

    def variants(self, name: str, scale: Scale) -> list[Value]:
        """What to try for one parameter at a scale."""
        parameter = self._entry.parameters[name]
        found = variants(name, parameter.annotation, self._use(name), self._first, scale)
        return [_cast(value, self._dtype) for value in found]

    @functools.cache  # noqa: B019 - lives as long as the search
    def _use(self, name: str) -> Use | None:
        return first_use(self._entry.model, name, self._entry.method or "forward")


def _likelihood(combination: tuple[tuple[int, Value], ...]) -> tuple[int, int]:
    """Sum of ranks; among equals, like ranks first, since arguments tend to be of a kind."""
    ranks = [rank for rank, _ in combination]
    return sum(ranks), max(ranks, default=0) - min(ranks, default=0)


def _float_dtype(model: Any) -> str:
    """dtype of the model's first parameter, which its float inputs share."""
    if isinstance(model, torch.nn.Module):
        for parameter in model.parameters():
            if parameter.is_floating_point() or parameter.is_complex():
                return str(parameter.dtype).removeprefix("torch.")
    return "float32"


def _cast(value: Value, dtype: str) -> Value:
    if isinstance(value, Group):
        return Group(tuple(_cast(item, dtype) for item in value.items), value.is_list)
    if isinstance(value, TensorInput) and value.dtype == "float32":
        return dataclasses.replace(value, dtype=dtype)
    return value
