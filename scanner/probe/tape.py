"""The ops of one step as they ran, to be run again on a device alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves, tree_map

from scanner.backends.interface import Device
from scanner.capture import describe
from scanner.capture.autograd import autograd_seen
from scanner.capture.recorder import Recorder
from scanner.records import Divergence, Location

__all__ = ["Player", "Tape"]


@dataclass(frozen=True)
class _Slot:
    """Stands for a tensor in the arguments of an entry."""

    number: int


@dataclass
class _Entry:
    op: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: list[int | None]
    """Slot of each tensor that the op returns, in order; None for what the step never sees."""
    frees: list[int] = field(default_factory=list)
    """Slots that nothing needs afterwards."""
    note: Divergence | None = None


class Tape(Recorder):
    """A recorder that keeps every call while `recording`, with what lives how long."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.recording = False
        self.entries: list[_Entry] = []
        self.initial: dict[int, Tensor] = {}
        """Slot → tensor of the CPU that was there before the step."""
        self._slots: dict[tuple[Any, ...], int] = {}
        self._alive: dict[int, tuple[Any, list[int]]] = {}
        self._made = 0

    def _perform(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self.recording:
            return super()._perform(func, args, kwargs)
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        on_host = bool(tensors) and all(map(self._placement.is_host, tensors))
        if on_host or self._placement.creating == "host":
            return super()._perform(func, args, kwargs)
        shown, named = tree_map(self._shown, (args, kwargs))
        result = super()._perform(func, args, kwargs)
        outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        places: list[int | None] = [self._slot(tensor, known=False) for tensor in outputs]
        self.entries.append(_Entry(describe.op_name(func), shown, named, places))
        return result

    def _ran(self, row: int, place: Location | None, result: Any) -> None:  # noqa: ARG002
        if not self.recording or not self.entries:
            return
        entry = self.entries[-1]
        if entry.note is None:
            call = self.call(row)
            entry.note = Divergence(
                op=call.op, phase=call.phase, step=1, kind="crash", message="", location=place
            )
        entry.frees += self._died()

    def _shown(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.detach() if self._placement.is_host(value) else _Slot(self._slot(value))
        return _Where() if isinstance(value, torch.device) else value

    def _slot(self, tensor: Tensor, *, known: bool = True) -> int:
        """The tensor's slot; one that is new and `known` was there before the step."""
        if tensor.layout is not torch.strided:
            return self._new(tensor, None)
        storage = tensor.untyped_storage()
        key = (
            storage._cdata, tensor.dtype, tensor.storage_offset(), tensor.shape, tensor.stride(),
            tensor.is_conj(), tensor.is_neg(),
        )  # fmt: skip
        slot = self._slots.get(key)
        if slot is not None:
            return slot
        alive = self._alive.get(storage._cdata)
        if known and alive is not None and alive[1]:
            slot = self._view(tensor, alive[1])
        if slot is None:
            slot = self._new(tensor if known else None, storage)
        self._slots[key] = slot
        return slot

    def _new(self, initial: Tensor | None, storage: torch.UntypedStorage | None) -> int:
        self._made += 1
        if initial is not None:
            self.initial[self._made] = initial.detach()
        elif storage is not None:
            place = storage._cdata
            self._alive.setdefault(place, (StorageWeakRef(storage), []))[1].append(self._made)
        return self._made

    def _view(self, tensor: Tensor, slots: list[int]) -> int | None:
        """Another view of a storage that the step has made, which autograd keeps as such."""
        self._made += 1
        slots.append(self._made)
        over = (list(tensor.shape), list(tensor.stride()), tensor.storage_offset())
        self.entries.append(_Entry("aten::as_strided", (_Slot(slots[0]), *over), {}, [self._made]))
        return self._made

    def _died(self) -> list[int]:
        gone = [place for place, (alive, _) in self._alive.items() if alive.expired()]
        slots = [slot for place in gone for slot in self._alive.pop(place)[1]]
        if gone:
            dead = set(slots)
            self._slots = {key: slot for key, slot in self._slots.items() if slot not in dead}
        return slots


class _Where:
    """Stands for the device in the arguments of an entry."""


class Player:
    """Runs a tape on a device, from the state that the step had left on the CPU."""

    def __init__(self, tape: Tape, device: Device) -> None:
        self._device = device
        where = device.upload(torch.zeros(())).device
        self._entries = [_placed(entry, where) for entry in tape.entries]
        order = list(tape.initial)
        uploaded = device.upload_all([tape.initial[slot] for slot in order])
        self.tensors = dict(zip(order, uploaded, strict=True))
        """Slot → parameters, state and inputs on the device, as they are after the last step."""

    def play(self, after: Callable[[Divergence | None], object] | None = None) -> None:
        """One step, submitted; `after` is called before each op with what it is."""
        slots: dict[int, Any] = dict(self.tensors)
        with torch.no_grad(), autograd_seen():
            for entry in self._entries:
                if after is not None:
                    after(entry.note)
                args = _given(entry.args, slots)
                kwargs = {name: _one(value, slots) for name, value in entry.kwargs.items()}
                result = self._device.submit(entry.op, args, kwargs)
                # Stand-ins of MPS-only ops return no buffers of MPS, and take none.
                for slot, leaf in zip_longest(entry.outputs, _tensors(result)):
                    if slot is not None:
                        slots.setdefault(slot, leaf)
                del result, args, kwargs
                for slot in entry.frees:
                    slots.pop(slot, None)


def _placed(entry: _Entry, where: torch.device) -> _Entry:
    def place(value: Any) -> Any:
        return where if isinstance(value, _Where) else value

    args, kwargs = tree_map(place, (entry.args, entry.kwargs))
    return _Entry(entry.op, args, kwargs, entry.outputs, entry.frees, entry.note)


def _given(args: Iterable[Any], slots: dict[int, Any]) -> tuple[Any, ...]:
    return tuple(_one(value, slots) for value in args)


def _one(value: Any, slots: dict[int, Any]) -> Any:
    if isinstance(value, _Slot):
        return slots[value.number]
    if isinstance(value, list | tuple):
        return [_one(item, slots) for item in value]
    return value


def _tensors(result: Any) -> Iterable[Tensor]:
    if isinstance(result, Tensor):
        return (result,)
    return [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
