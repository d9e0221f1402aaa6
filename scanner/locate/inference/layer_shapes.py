"""Shapes and dtypes that fit a layer, from its settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from scanner.locate.inference.layers import STATE, Use
from scanner.locate.spec import Group, TensorInput, Value

__all__ = ["BATCH", "EDGES", "NODES", "Scale", "floats", "ints", "layer_variants"]

BATCH = 2
"""Batch normalisation refuses 1 in training."""

NODES = 16
EDGES = 40

_SINGLE = re.compile(r"(^|_)(user|item|movie|entity|head|tail|relation)s?(_|$)|^(t|y|labels?)$")
"""Names that stand for one index per sample rather than a sequence."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The sizes that all arguments of one trial share."""

    image: int
    length: int
    signal: int
    vocabulary: int = 2
    is_time_first: bool = False
    """Whether the model has a recurrent or attention layer that wants time before batch."""
    is_graph: bool = False
    """Whether an argument holds the edges of a graph, so that others are per node."""


def floats(*shape: int) -> TensorInput:
    """A float32 tensor."""
    return TensorInput(shape=shape)


def ints(*shape: int, high: int, low: int = 0) -> TensorInput:
    """An int64 tensor of values from `low` to below `high`."""
    return TensorInput(shape=shape, dtype="int64", low=low, high=max(high, low + 1))


def layer_variants(use: Use, name: str, scale: Scale) -> list[Value]:
    """What a layer accepts at a scale, likeliest first; empty for layers that tell nothing."""
    if use.function == STATE:
        return _state(use.layer)
    if isinstance(use.layer, torch.Tensor):
        return list(_by_weight(use.layer, use.function, scale))
    found: list[Value] = []
    for kinds, shapes in _LAYERS:
        if isinstance(use.layer, kinds):
            found = list(shapes(use.layer, name, scale))
            break
    if use.share > 1 and isinstance(use.layer, nn.Linear):
        size = use.layer.in_features // use.share
        found = [*_features(max(size, 1)), *found]
    return found


def _state(layer: Any) -> list[Value]:
    """What a recurrent layer keeps between calls; LSTMs keep a pair."""
    shape: tuple[int, ...] = (BATCH, layer.hidden_size)
    if isinstance(layer, nn.RNNBase):
        shape = (layer.num_layers * (2 if layer.bidirectional else 1), *shape)
    state = floats(*shape)
    is_pair = isinstance(layer, nn.LSTM | nn.LSTMCell)
    return [Group((state, state)), state] if is_pair else [state]


def _by_weight(weight: torch.Tensor, function: str, scale: Scale) -> Iterator[Value]:
    """Inputs of a functional that gets a bare weight."""
    if function == "embedding":
        yield ints(BATCH, scale.length, high=weight.shape[0])
    elif function == "conv2d":
        yield floats(BATCH, weight.shape[1], scale.image, scale.image)
    elif function == "conv1d":
        yield floats(BATCH, weight.shape[1], scale.signal)
    elif function == "linear":
        yield from _features(weight.shape[-1])
    elif weight.dim() == 1:
        yield from _features(weight.shape[0])
    else:
        yield from _features(weight.shape[-2])


def _features(size: int) -> Iterator[Value]:
    yield floats(BATCH, size)
    yield floats(BATCH, 16, size)
    yield floats(16, size)
    yield floats(BATCH, 4, 16, size)


def _linear(layer: Any, name: str, scale: Scale) -> Iterator[Value]:
    size = layer.in_features if not isinstance(layer, nn.Bilinear) else layer.in1_features
    if size == 0:  # a lazy layer takes any number of features
        yield floats(BATCH, 16)
    elif scale.is_graph:
        yield floats(EDGES if "edge" in name else NODES, size)
    elif size == 1:
        yield from (floats(BATCH, 1), floats(BATCH), floats(BATCH, 16, 1))
    else:
        yield from _features(size)


def _bag(layer: Any, _name: str, _scale: Scale) -> Iterator[Value]:
    yield ints(BATCH, 16, high=layer.num_embeddings)


def _embedding(layer: Any, name: str, scale: Scale) -> Iterator[Value]:
    sequence = ints(BATCH, scale.length, high=layer.num_embeddings)
    single = ints(BATCH, high=layer.num_embeddings)
    if scale.is_time_first:
        yield ints(scale.length, BATCH, high=layer.num_embeddings)
    yield from (single, sequence) if _SINGLE.search(name) else (sequence, single)
    yield ints(scale.length, high=layer.num_embeddings)


def _conv1d(layer: Any, _name: str, scale: Scale) -> Iterator[Value]:
    channels = layer.in_channels or 3
    yield floats(BATCH, channels, scale.signal)
    yield floats(BATCH, scale.length, channels)
    if channels == 1:
        yield floats(BATCH, scale.signal)


def _conv2d(layer: Any, _name: str, scale: Scale) -> Iterator[Value]:
    channels, size = layer.in_channels or 3, scale.image
    yield floats(BATCH, channels, size, size)
    yield floats(BATCH, size, size, channels)
    if channels == 1:
        yield floats(BATCH, size, size)
        yield floats(BATCH, 80, scale.length)
        yield floats(BATCH, scale.length, 80)
    yield floats(BATCH, 8, channels, size, size)


def _transposed(layer: Any, _name: str, _scale: Scale) -> Iterator[Value]:
    """A transposed convolution at the front is a generator: its input is a point or small map."""
    channels = layer.in_channels or 3
    dims = len(layer.kernel_size)
    yield floats(BATCH, channels, *([1] * dims))
    yield floats(BATCH, channels, *([8] * dims))
    yield floats(BATCH, channels)


def _conv3d(layer: Any, _name: str, scale: Scale) -> Iterator[Value]:
    channels = layer.in_channels or 3
    size = min(scale.image, 112)
    yield floats(BATCH, channels, 16, size, size)
    yield floats(BATCH, channels, 32, 32, 32)
    yield floats(BATCH, channels, 64, 64, 64)


def _recurrent(layer: Any, _name: str, scale: Scale) -> Iterator[Value]:
    batched = floats(BATCH, scale.length, layer.input_size)
    timed = floats(scale.length, BATCH, layer.input_size)
    yield from (batched, timed) if layer.batch_first else (timed, batched)
    if layer.input_size == 1:
        yield floats(BATCH, scale.length)


def _cell(layer: Any, _name: str, scale: Scale) -> Iterator[Value]:
    yield floats(BATCH, layer.input_size)
    yield floats(BATCH, scale.length, layer.input_size)


def _attention(layer: Any, _name: str, scale: Scale) -> Iterator[Value]:
    inner = getattr(layer, "self_attn", layer)
    size = int(getattr(inner, "embed_dim", 0) or getattr(layer, "d_model", 16))
    batched = floats(BATCH, scale.length, size)
    timed = floats(scale.length, BATCH, size)
    is_batched = getattr(inner, "batch_first", False)
    yield from (batched, timed) if is_batched else (timed, batched)


def _layer_norm(layer: Any, _name: str, _scale: Scale) -> Iterator[Value]:
    yield floats(BATCH, 16, *layer.normalized_shape)
    yield floats(BATCH, *layer.normalized_shape)


def _norm(layer: Any, _name: str, scale: Scale) -> Iterator[Value]:
    channels = getattr(layer, "num_features", None) or getattr(layer, "num_channels", 0) or 3
    flat, image = floats(BATCH, channels), floats(BATCH, channels, 32, 32)
    is_flat = isinstance(layer, nn.BatchNorm1d)
    yield from (flat, floats(BATCH, channels, scale.signal), image) if is_flat else (image, flat)
    yield floats(BATCH, channels, 16, 16, 16)


_Shapes = Callable[[Any, str, Scale], Iterator[Value]]
_LAYERS: tuple[tuple[Any, _Shapes], ...] = (
    ((nn.Linear, nn.Bilinear), _linear),
    (nn.EmbeddingBag, _bag),
    (nn.Embedding, _embedding),
    (nn.modules.conv._ConvTransposeNd, _transposed),
    (nn.Conv1d, _conv1d),
    (nn.Conv2d, _conv2d),
    (nn.Conv3d, _conv3d),
    (nn.RNNBase, _recurrent),
    (nn.RNNCellBase, _cell),
    (
        (
            nn.MultiheadAttention,
            nn.Transformer,
            nn.TransformerEncoderLayer,
            nn.TransformerDecoderLayer,
        ),
        _attention,
    ),
    (nn.LayerNorm, _layer_norm),
    ((nn.GroupNorm, nn.modules.batchnorm._NormBase), _norm),
)
