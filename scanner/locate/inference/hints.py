"""Sizes that the file or model speaks of: image sizes and sequence lengths."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Any

import torch

from scanner.locate.context import Context

__all__ = ["image_sizes", "sequence_lengths"]

_IMAGE = re.compile(r"^(img|image|input|crop)_?(size|res|resolution|dim)$|^resolution$", re.I)
_LENGTH = re.compile(
    r"^(block_size|context_(len|length|size|window)|max_(seq_?)?(len|length)|seq_?(len|length)"
    r"|max_seq(uence)?_(len|length)|n_ctx|n_positions|max_position_embeddings|sequence_length)$",
    re.I,
)
_DATASETS = {"CIFAR10": 32, "CIFAR100": 32, "SVHN": 32, "MNIST": 28, "FashionMNIST": 28}
_LARGEST = 4096
_CONFIGS = ("config", "cfg", "args", "hparams", "conf")


def image_sizes(context: Context, model: Any) -> list[int]:
    """Edge lengths of images that the model, its file or a dataset named there speak of."""
    sizes = [size for name, size in _named_sizes(context, model) if _IMAGE.search(name)]
    for node in ast.walk(context.tree):
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if isinstance(name, str) and name in _DATASETS:
            sizes.append(_DATASETS[name])
    return sizes


def sequence_lengths(context: Context, model: Any) -> list[int]:
    """Longest sequences that the model accepts, as far as named; no longer than 4096."""
    sizes = [size for name, size in _named_sizes(context, model) if _LENGTH.search(name)]
    sizes += _positions(model)
    if not sizes:
        return []
    return [min(*sizes, _LARGEST), *sizes]


def _named_sizes(context: Context, model: Any) -> Iterator[tuple[str, int]]:
    """Integers by name: of the model, its submodules and configs, its constructor, the file."""
    modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    for module in modules[:50]:
        for owner in (module, *(getattr(module, name, None) for name in _CONFIGS)):
            fields = owner if isinstance(owner, dict) else getattr(owner, "__dict__", {})
            yield from _integers(fields)
    if inspect.isclass(type(model)) and modules:
        parameters = inspect.signature(type(model).__init__).parameters
        yield from _integers({name: p.default for name, p in parameters.items()})
    yield from _integers(context.namespace)


def _integers(fields: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for name, value in fields.items():
        if isinstance(value, tuple | list) and value and isinstance(value[-1], int):
            value = value[-1]
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            yield str(name), value


def _positions(model: Any) -> list[int]:
    """Rows of learned position tables."""
    found: list[int] = []
    if not isinstance(model, torch.nn.Module):
        return found
    for name, module in model.named_modules():
        last = name.rpartition(".")[2].lower()
        if isinstance(module, torch.nn.Embedding) and ("pos" in last or last == "wpe"):
            found.append(module.num_embeddings)
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        last = name.rpartition(".")[2].lower()
        if last.startswith("pos") and tensor.dim() == 3 and tensor.shape[0] == 1:
            found.append(tensor.shape[1])
    return found
