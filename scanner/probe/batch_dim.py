"""Which dimension of a model's inputs counts samples: found by trying, never by name.

A dimension is the batch when the output of the whole is the outputs of its parts, one after the
other, or for a loss their mean or sum. Attention, recurrence and convolution along a dimension fail
that. The model is asked in evaluation mode, where batch normalisation does not mix samples, and
with everything random silenced.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from scanner.locate.interface import Subject

__all__ = ["BatchDim", "find_batch_dim", "resized"]

_CLOSE = 1e-3


@dataclass(frozen=True)
class BatchDim:
    """Where the samples are."""

    inputs: int
    """Dimension of the input tensors that have it."""
    size: int
    """Samples that the file gives."""
    output: int | None
    """Dimension of the output's tensors; None when only a loss comes out."""


class UnclearError(Exception):
    """Which dimension it is cannot be told; the text says why."""


def find_batch_dim(subject: Subject) -> BatchDim | str:
    """The batch dimension of the subject's inputs, or why it is unknown.

    Runs the forward in the ambient world, whose tensors must have values.
    """
    tensors = [leaf for leaf in _inputs(subject) if leaf.dim()]
    if not tensors:
        return "the model takes no tensors with a dimension"
    why = "no dimension is common to all input tensors"
    for dim in (0, 1):
        sizes = {tensor.shape[dim] for tensor in tensors if tensor.dim() > dim}
        if len(sizes) != 1 or not any(tensor.dim() > dim for tensor in tensors):
            continue
        try:
            with _evaluating(subject.model), torch.no_grad(), _Silent():
                return BatchDim(dim, sizes.pop(), _separable(subject, dim))
        except UnclearError as unclear:
            why = f"dimension {dim} of the inputs: {unclear}"
        except Exception as error:
            why = (
                f"dimension {dim} of the inputs: the model raises {type(error).__name__} on a part"
            )
    return why


def resized(subject: Subject, dim: int, size: int) -> Subject:
    """The subject with its samples repeated, or left out, until there are `size`."""

    def resize(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.dim() <= dim:
            return value
        places = torch.arange(size, device=value.device) % value.shape[dim]
        leaf = value.detach().index_select(dim, places)
        return leaf.requires_grad_(value.requires_grad)

    args, kwargs = tree_map(resize, (subject.args, subject.kwargs))
    return replace(subject, args=args, kwargs=kwargs)


def _inputs(subject: Subject) -> list[Tensor]:
    leaves = tree_leaves((subject.args, subject.kwargs))
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def _separable(subject: Subject, dim: int) -> int | None:
    whole = _varied(subject, dim)
    size = next(leaf.shape[dim] for leaf in _inputs(whole) if leaf.dim() > dim)
    half = size // 2
    parts = [_sliced(whole, dim, 0, half), _sliced(whole, dim, half, size)]
    outputs = [_floats(_called(each)) for each in (whole, *parts)]
    if len({len(each) for each in outputs}) != 1 or not outputs[0]:
        raise UnclearError("what comes out differs in kind between parts and the whole")
    found = {
        _joined(one, two, three, half / size) for one, two, three in zip(*outputs, strict=True)
    }
    dims = found - {None}
    if len(dims) > 1:
        raise UnclearError("the outputs have it in different places")
    return dims.pop() if dims else None


def _varied(subject: Subject, dim: int) -> Subject:
    """With two samples at least, the second made of the first's own values in another order."""

    def vary(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.dim() <= dim or value.shape[dim] > 1:
            return value
        return torch.cat([value, value.flatten().roll(1).reshape(value.shape)], dim)

    args, kwargs = tree_map(vary, (subject.args, subject.kwargs))
    return replace(subject, args=args, kwargs=kwargs)


def _sliced(subject: Subject, dim: int, start: int, stop: int) -> Subject:
    def cut(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.dim() <= dim:
            return value
        return value.narrow(dim, start, stop - start)

    args, kwargs = tree_map(cut, (subject.args, subject.kwargs))
    return replace(subject, args=args, kwargs=kwargs)


def _called(subject: Subject) -> Any:
    return (subject.forward or subject.model)(*subject.args, **subject.kwargs)


def _floats(output: Any) -> list[Tensor]:
    if hasattr(output, "__dict__") and not isinstance(output, Tensor | dict):
        output = vars(output)
    leaves = tree_leaves(output)
    return [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.is_floating_point()]


def _joined(whole: Tensor, first: Tensor, second: Tensor, share: float) -> int | None:
    """The dimension along which the parts make the whole; None for a mean or sum of them."""
    for dim in range(whole.dim()):
        if first.dim() != whole.dim() or second.dim() != whole.dim():
            break
        if first.shape[dim] + second.shape[dim] != whole.shape[dim]:
            continue
        if _close(torch.cat([first, second], dim), whole):
            return dim
        raise UnclearError("samples are not computed apart from each other")
    if whole.shape != first.shape or whole.shape != second.shape:
        raise UnclearError("the output does not grow with it")
    if _close(first * share + second * (1 - share), whole) or _close(first + second, whole):
        return None
    raise UnclearError("samples are not computed apart from each other")


def _close(one: Tensor, other: Tensor) -> bool:
    scale = float(other.abs().max()) if other.numel() else 0.0
    return one.shape == other.shape and torch.allclose(
        one.float(), other.float(), rtol=_CLOSE, atol=_CLOSE * scale, equal_nan=True
    )


class _Silent(TorchDispatchMode):
    """Whatever is drawn is zero, whole and parts alike."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in func.tags:
            for leaf in tree_leaves(result):
                if isinstance(leaf, Tensor):
                    leaf.zero_()
        return result


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    if not isinstance(model, nn.Module):
        yield
        return
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
