"""Targets that fit a model's output: what a loss could be given besides it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from scanner.locate.spec import TensorInput

__all__ = ["ctc_targets", "first_tensor", "scalar_loss", "target_shapes"]

_TARGET_LENGTH = 8
"""Labels per sequence for CTC; must stay below the number of time steps."""


def first_tensor(output: Any) -> torch.Tensor | None:
    """The first floating tensor of an output, of its largest rank when it is a collection."""
    found = [t for t in _tensors(output) if t.is_floating_point() or t.is_complex()]
    return max(found, key=lambda t: t.dim(), default=None)


def _tensors(output: Any) -> Iterator[torch.Tensor]:
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, dict):
        for value in output.values():
            yield from _tensors(value)
    elif isinstance(output, list | tuple):
        for value in output:
            yield from _tensors(value)
    elif hasattr(output, "__dict__") and not isinstance(output, torch.nn.Module):
        for value in vars(output).values():
            yield from _tensors(value)


def scalar_loss(output: Any) -> str | None:
    """How to take the loss from a model's output, as a Python suffix; None when it holds none.

    The empty suffix means that the output is the loss.
    """
    if _is_scalar(output):
        return ""
    if isinstance(output, dict) and _is_scalar(output.get("loss")):
        return "['loss']"
    if _is_scalar(getattr(output, "loss", None)):
        return ".loss"
    if isinstance(output, tuple | list):
        at = [index for index, item in enumerate(output) if _is_scalar(item)]
        if len(at) == 1:
            return f"[{at[0]}]"
    return None


def _is_scalar(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() == 0 and value.is_floating_point()


def target_shapes(output: torch.Tensor, *, classes_first: bool) -> list[TensorInput]:
    """Targets for an output of shape (N, …), likeliest first, without repeats.

    Class indices for scores (N, C, …) and (…, C), values like the output, and both flattened; with
    `classes_first` the indices come first, else the values.
    """
    shape = tuple(output.shape)
    dtype = str(output.dtype).removeprefix("torch.")
    indices = list(_index_targets(shape))
    values = [_values(size, dtype) for size in (shape, shape[:-1], shape[:1], (*shape, 1))]
    if shape[-1:] == (1,):
        values.insert(1, _values(shape[:-1], dtype))
    ordered = [*indices, *values] if classes_first else [*values, *indices]
    return list(dict.fromkeys(ordered))


def _values(shape: tuple[int, ...], dtype: str) -> TensorInput:
    return TensorInput(shape=shape, dtype=dtype, low=0.0, high=1.0)


def _index_targets(shape: tuple[int, ...]) -> Iterator[TensorInput]:
    if len(shape) >= 2:
        yield _indices((shape[0], *shape[2:]), shape[1])
        yield _indices(shape[:-1], shape[-1])
        yield _indices((math.prod(shape[:-1]),), shape[-1])
        yield _indices((shape[0],), shape[-1])
        yield _indices((*shape[:-2], shape[-2] + 1), shape[-1])
    yield _indices(shape, 2)


def _indices(shape: tuple[int, ...], classes: int) -> TensorInput:
    return TensorInput(shape=shape, dtype="int64", low=0, high=max(classes, 1))


def ctc_targets(output: torch.Tensor, names: list[str], batch: int) -> list[dict[str, TensorInput]]:
    """Labels and lengths for log-probabilities (T, N, C), or (N, T, C) before a transpose.

    `names` are the open names of targets, input lengths and target lengths, those of them that
    are needed, told apart by what they contain. `batch` is the batch size of the inputs.
    """
    found: list[dict[str, TensorInput]] = []
    if output.dim() != 3:
        return found
    sizes = [(output.shape[0], output.shape[1]), (output.shape[1], output.shape[0])]
    for time, samples in sorted(sizes, key=lambda size: size[1] != batch):
        labels = min(_TARGET_LENGTH, max(time // 2, 1))
        lengths = TensorInput(shape=(samples,), dtype="int64", low=time, high=time + 1)
        label_lengths = TensorInput(shape=(samples,), dtype="int64", low=labels, high=labels + 1)
        classes = TensorInput(
            shape=(samples, labels), dtype="int64", low=1, high=max(output.shape[2], 2)
        )
        chosen: dict[str, TensorInput] = {}
        for name in names:
            chosen[name] = classes
            if "len" in name.lower():
                is_label = any(word in name.lower() for word in ("target", "label", "y_", "text"))
                chosen[name] = label_lengths if is_label else lengths
        found.append(chosen)
    return found
