"""Which targets the names that a loss leaves open want, by the calls that they are passed to."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from scanner.locate.reading.trees import root_name
from scanner.locate.training.slices import Slice, loads
from scanner.locate.training.targets import ctc_targets, first_tensor, target_shapes

__all__ = ["Wanted", "choices", "is_classifying"]

_CLASSIFYING = ("cross_entropy", "crossentropy", "nll", "margin", "focal")
_MOST_TRIALS = 200
_MOST_RANKED = 20_000


def is_classifying(text: str) -> bool:
    """Whether code that computes a loss takes class indices as targets, by the names in it."""
    plain = re.sub(r"binary_?cross_?entropy|bce", "", text.lower())
    return any(word in plain for word in _CLASSIFYING)


class Wanted:
    """Collects the open names of a loss, and whether each is a class index."""

    def __init__(self) -> None:
        self.classes: dict[str, bool | None] = {}
        """By name, in order of use; None where no call tells."""
        self.text = ""
        """All that the loss says, in lower case."""

    def add(self, code: Slice, namespace: Mapping[str, Any], names: list[str]) -> None:
        """Reads one part of the loss, whose names mean what `namespace` holds."""
        self.classes.update((name, None) for name in names if name not in self.classes)
        for node in (*code.statements, code.expression):
            self.text += f" {ast.unparse(node).lower()}"
            for part in ast.walk(node):
                if isinstance(part, ast.Call):
                    self._call(part, namespace)

    def _call(self, call: ast.Call, namespace: Mapping[str, Any]) -> None:
        said = ast.unparse(call.func)
        value = namespace.get(root_name(call.func) or "")
        if isinstance(value, torch.nn.Module):
            said += f" {type(value).__name__}"
        self.text += f" {said.lower()}"
        is_loss = re.search(r"loss|entropy|kl_div|criterion", said, re.IGNORECASE)
        targets = [*call.args[1:], *(k.value for k in call.keywords if k.arg == "target")]
        for argument in targets if is_loss else ():
            for name in loads(argument):
                if name in self.classes and self.classes[name] is None:
                    self.classes[name] = is_classifying(said)


def choices(wanted: Wanted, output: Any, inputs: list[Any]) -> Iterator[dict[str, Any]]:
    """Assignments of targets to the wanted names, likeliest first.

    `inputs` are the model's own, which a loss may compare its output with.
    """
    names = list(wanted.classes)
    if not names:
        yield {}
        return
    main = first_tensor(output)
    if main is None:
        return
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    if "ctc" in wanted.text:
        batch = next((tensor.shape[0] for tensor in tensors if tensor.dim()), 0)
        yield from ctc_targets(main, names, batch)
    options: list[list[Any]] = []
    for told in wanted.classes.values():
        first = is_classifying(wanted.text) if told is None else told
        options.append([*target_shapes(main, classes_first=first), *tensors])
    ranked = itertools.islice(itertools.product(*map(enumerate, options)), _MOST_RANKED)
    for combination in sorted(ranked, key=_likelihood)[:_MOST_TRIALS]:
        yield dict(zip(names, (value for _, value in combination), strict=True))


def _likelihood(combination: tuple[tuple[int, Any], ...]) -> tuple[int, int]:
    """Sum of ranks, and among equals those of one kind."""
    return sum(rank for rank, _ in combination), len({id(value) for _, value in combination})
