"""Shapes and dtypes to try for one argument, from its name and the layer that receives it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from typing import Any

from torch import nn

from scanner.locate.inference.layer_shapes import (
    BATCH,
    EDGES,
    NODES,
    Scale,
    floats,
    ints,
    layer_variants,
)
from scanner.locate.inference.layers import Use
from scanner.locate.spec import Literal, TensorInput, Value

__all__ = ["is_target_name", "scales", "variants"]

_IMAGES = {
    1: (28, 32, 64, 224, 128, 256, 16, 48, 96),
    3: (224, 32, 64, 96, 128, 256, 48, 84, 227, 299, 384, 512, 16),
    4: (64, 84, 32, 224, 128, 28, 256),
}
_OTHER_IMAGES = (64, 32, 224, 28, 84, 16, 8, 128, 256)
_LENGTHS = (128, 64, 32, 16, 256, 512, 100, 50, 10, 8, 1024)
_RECURRENT_LENGTHS = (32, 16, 64, 128, 100, 10, 8, 256)
"""A recurrent layer takes any length and spends time on each step of it."""
_SIGNALS = (1024, 128, 16000, 256, 512, 100, 64, 2048, 187, 3000, 32)

_IDS = re.compile(r"(^|_)(ids?|idx|index|indices|tokens?|src|tgt|source|seq|sequence|words?|text)$")
_ENTITY = re.compile(r"(^|_)(users?|items?|movies?|entity|entities|heads?|tails?|relations?)(_|$)")
_MASK = re.compile(r"mask")
_LENGTH = re.compile(r"(^|_)(lens?|lengths?|sizes)$")
_TIME = re.compile(r"^(t|ts|time|times|timesteps?|step|sigma|noise_level|noise_levels)$")
_TARGET = re.compile(r"^(y|targets?|labels?|y_true|gt|ground_truth)$")
_EDGES = re.compile(r"(edge_index|edges|adj_t)$")
_NODE_BATCH = re.compile(r"^batch(_index)?$")


def is_target_name(name: str) -> bool:
    """Whether a parameter of this name takes the labels by convention."""
    return _TARGET.search(name) is not None


def scales(model: Any, names: Iterable[str], images: list[int], lengths: list[int]) -> list[Scale]:
    """Scales to try, hinted sizes first; `names` are the parameters of the forward."""
    is_graph = any(_EDGES.search(name) for name in names)
    image_sizes = _unique([*images, *_IMAGES.get(_channels(model), _OTHER_IMAGES)])
    usual = [*_RECURRENT_LENGTHS, *lengths] if _is_recurrent(model) else [*lengths, *_LENGTHS]
    length_sizes = _unique(usual)
    vocabulary = _vocabulary(model)
    count = max(len(image_sizes), len(length_sizes), len(_SIGNALS))
    return [
        Scale(
            image=_at(image_sizes, index),
            length=_at(length_sizes, index),
            signal=_at(list(_SIGNALS), index),
            vocabulary=vocabulary,
            is_time_first=_is_time_first(model),
            is_graph=is_graph,
        )
        for index in range(count)
    ]


def _unique(sizes: list[int]) -> list[int]:
    return list(dict.fromkeys(size for size in sizes if size > 0))


def _at(sizes: list[int], index: int) -> int:
    return sizes[min(index, len(sizes) - 1)]


def _channels(model: Any) -> int:
    modules = model.modules() if isinstance(model, nn.Module) else ()
    return next((m.in_channels for m in modules if isinstance(m, nn.Conv2d)), 3)


def _is_recurrent(model: Any) -> bool:
    modules = model.modules() if isinstance(model, nn.Module) else ()
    return any(isinstance(module, nn.RNNBase | nn.RNNCellBase) for module in modules)


def _is_time_first(model: Any) -> bool:
    modules = model.modules() if isinstance(model, nn.Module) else ()
    return any(getattr(module, "batch_first", True) is False for module in modules)


def _vocabulary(model: Any) -> int:
    modules = model.modules() if isinstance(model, nn.Module) else ()
    return next((m.num_embeddings for m in modules if isinstance(m, nn.Embedding)), 2)


def variants(
    name: str, annotation: Any, use: Use | None, fallback: Use | None, scale: Scale
) -> list[Value]:
    """What to try for a parameter at one scale, likeliest first, without repeats.

    `use` is the layer that the argument was followed to, `fallback` the model's first layer.
    """
    found: list[Value] = []
    literal = _python_value(annotation)
    if literal is not None:
        return [literal]
    by_layer = layer_variants(use, name, scale) if use is not None else []
    by_name = _by_name(name, scale)
    telling = any(pattern.search(name) for pattern in (_MASK, _LENGTH, _EDGES))
    is_table = use is not None and isinstance(use.layer, nn.Embedding)
    telling = telling or (_TIME.search(name) is not None and not is_table)
    found += [*by_name, *by_layer] if telling else [*by_layer, *by_name]
    if use is None:
        found += layer_variants(fallback, name, scale) if fallback is not None else []
        found += [
            floats(BATCH, 16),
            floats(BATCH, 3, scale.image, scale.image),
            floats(BATCH, 16, 16),
        ]
        found += [floats(BATCH), floats(BATCH, 1), ints(BATCH, scale.length, high=scale.vocabulary)]
    return list(dict.fromkeys(found))


def _python_value(annotation: Any) -> Literal | None:
    values: dict[Any, bool | int | float] = {bool: False, int: 1, float: 1.0}
    names: dict[Any, bool | int | float] = {"bool": False, "int": 1, "float": 1.0}
    if isinstance(annotation, str):
        return Literal(names[annotation]) if annotation in names else None
    return Literal(values[annotation]) if annotation in values else None


def _by_name(name: str, scale: Scale) -> list[Value]:
    """Conventions of argument names, where the layer does not tell."""
    length, vocabulary = scale.length, scale.vocabulary
    rules: list[tuple[re.Pattern[str], Callable[[], list[Value]]]] = [
        (_EDGES, lambda: [ints(2, EDGES, high=NODES)]),
        (_MASK, lambda: _masks(name, length)),
        (_LENGTH, lambda: _lengths(length)),
        (_TIME, lambda: [ints(BATCH, high=1000), floats(BATCH), floats(BATCH, 1), floats()]),
        (
            _TARGET,
            lambda: [ints(BATCH, high=2), ints(BATCH, length, high=vocabulary), floats(BATCH)],
        ),
        (_ENTITY, lambda: [ints(BATCH, high=2)]),
        (_NODE_BATCH, lambda: [ints(NODES, high=2)]),
        (_IDS, lambda: [ints(BATCH, length, high=vocabulary)] if vocabulary > 2 else []),
    ]
    return [value for pattern, make in rules if pattern.search(name) for value in make()]


def _lengths(length: int) -> list[Value]:
    """Full lengths, which every batch allows; on the host for packed sequences."""
    full = ints(BATCH, low=length, high=length + 1)
    return [full, dataclasses.replace(full, on_host=True)]


def _masks(name: str, length: int) -> list[Value]:
    square = [
        TensorInput(shape=(length, length)),
        TensorInput(shape=(length, length), dtype="bool"),
    ]
    flat = [
        TensorInput(shape=(BATCH, length), dtype="bool"),
        TensorInput(shape=(BATCH, length), dtype="int64", low=1, high=2),
        TensorInput(shape=(BATCH, length)),
    ]
    deep = [
        TensorInput(shape=(BATCH, 1, length, length), dtype="bool"),
        TensorInput(shape=(BATCH, 1, 1, length), dtype="bool"),
    ]
    is_padding = "padding" in name or "attention" in name
    return [*flat, *square, *deep] if is_padding else [*square, *flat, *deep]
