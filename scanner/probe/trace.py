"""Watches a step run and keeps a fingerprint of what every op gave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from scanner.capture.describe import dtype_name, op_name
from scanner.probe.families import UNDEFINED
from scanner.probe.schema import schema_of
from scanner.records import Phase

__all__ = ["Entry", "Fingerprint", "Replay", "Tracer"]

_SAMPLES = 256
_GENERATORS = frozenset(
    {
        *("aten::bernoulli_.float", "aten::bernoulli.p", "aten::uniform_", "aten::normal_"),
        *("aten::rand", "aten::randn", "aten::rand_like", "aten::randn_like", "aten::randint"),
        *("aten::randint.low", "aten::randperm", "aten::exponential_", "aten::bernoulli"),
        "aten::native_dropout",
    }
)
"""Ops whose values come from the generator alone, and dropout, whose mask does."""


@dataclass(frozen=True)
class Fingerprint:
    """A tensor, small enough to keep for every op of a step."""

    dtype: str
    shape: tuple[int, ...]
    lost: int
    """Elements that are infinite or NaN."""
    samples: Tensor
    """At most 256 elements at fixed places, float64 on the CPU."""


@dataclass(frozen=True)
class Entry:
    """One op as it ran."""

    op: str
    phase: Phase
    step: int
    outputs: tuple[Fingerprint, ...]
    finite_inputs: bool
    """Whether all floating arguments were finite; only looked at when an output is not."""
    random: bool


@dataclass
class Replay:
    """Random values of one run for another to use: else nothing after them could be compared."""

    values: dict[tuple[str, int], list[Tensor]] = field(default_factory=dict)
    """(op, how many times it had run before) → what it gave, on the CPU."""


class Tracer(TorchDispatchMode):
    """Active around a step; set `phase` to `optimizer` and `step` as the step goes on.

    With `record`, random values are kept in it; with `replay`, they are taken from it.
    """

    def __init__(self, *, record: Replay | None = None, replay: Replay | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.phase: Phase = "forward"
        self.step = 0
        self.entries: list[Entry] = []
        self._record = record
        self._replay = replay
        self._seen: dict[str, int] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.namespace != "aten":
            return result
        name = op_name(func)
        seeded = torch.Tag.nondeterministic_seeded in func.tags
        if seeded and name in _GENERATORS:
            self._share(name, result, args)
        # What memory held before is no result.
        promised = schema_of(name).family not in UNDEFINED
        tensors = _tensors(result) if promised else ()
        prints = tuple(_print(tensor) for tensor in tensors if tensor.numel())
        lost = any(each.lost for each in prints)
        self.entries.append(
            Entry(
                op=name,
                phase=self._phase(),
                step=self.step,
                outputs=prints,
                finite_inputs=not lost or _all_finite((args, kwargs)),
                random=seeded and name not in _GENERATORS,
            )
        )
        return result

    def _phase(self) -> Phase:
        node: Any = torch._C._current_autograd_node()
        return self.phase if node is None else "backward"

    def _share(self, name: str, result: Any, args: tuple[Any, ...]) -> None:
        key = name, self._seen.get(name, 0)
        self._seen[name] = key[1] + 1
        tensors = list(_tensors(result))
        if self._record is not None:
            self._record.values[key] = [tensor.detach().to("cpu", copy=True) for tensor in tensors]
        known = self._replay.values.get(key, []) if self._replay is not None else []
        for tensor, value in zip(tensors, known, strict=False):
            if tensor.shape == value.shape:
                tensor.detach().copy_(value)
        if known and name == "aten::native_dropout":
            output, mask = tensors
            kept = 1 - float(args[1])
            output.detach().copy_(args[0].detach() * mask / kept if kept else mask)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        if value.layout == torch.strided:
            yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _print(tensor: Tensor) -> Fingerprint:
    flat = tensor.detach().reshape(-1)
    floating = tensor.is_floating_point() or tensor.is_complex()
    lost = int((~flat.isfinite()).sum()) if floating else 0
    count = flat.numel()
    places = torch.linspace(0, count - 1, min(count, _SAMPLES), dtype=torch.float64).long()
    picked = flat[places.to(flat.device)].to("cpu").resolve_conj()
    if picked.is_complex():
        picked = torch.view_as_real(picked.to(torch.complex128)).reshape(-1)
    return Fingerprint(
        dtype_name(tensor.dtype), tuple(tensor.shape), lost, picked.to(torch.float64)
    )


def _all_finite(arguments: Any) -> bool:
    floating = (t for t in _tensors(arguments) if t.is_floating_point() or t.is_complex())
    return all(bool(tensor.isfinite().all()) for tensor in floating)
