"""Sees every op that reaches a backend while it is active, and keeps configurations and order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from scanner.capture import describe
from scanner.capture.autograd import autograd_seen, sequence_number
from scanner.capture.inside import Inside
from scanner.capture.placement import Placement
from scanner.capture.steering import steering_values
from scanner.capture.values import Values
from scanner.records import Location, OpCall, Phase, Step, TensorSpec, Value

__all__ = ["Recorder"]

_BOOKKEEPING = frozenset({"prim", "profiler"})
"""Namespaces whose ops do no work on a device."""

_FRESH = torch.ops.aten.lift_fresh.default
"""What `torch.tensor()` ends in: its argument is the new tensor, wherever that is made."""

Locate = Callable[[Phase], "Location | None"]


@dataclass(frozen=True)
class _Arguments:
    """What a configuration is called with."""

    specs: tuple[TensorSpec, ...]
    attributes: dict[str, Any]
    values: dict[str, tuple[int, ...]]


@dataclass
class _Row:
    """A configuration while it is being counted."""

    func: Any
    phase: Phase
    inputs: tuple[TensorSpec, ...]
    attributes: dict[str, Any]
    outputs: tuple[TensorSpec, ...]
    values: dict[str, tuple[int, ...]]
    inner: dict[str, tuple[str, ...]]
    calls: int = 0
    locations: dict[int, int] = field(default_factory=dict)
    """id of an interned Location → its index."""
    places: list[Location] = field(default_factory=list)


class Recorder(TorchDispatchMode):
    """Records the ops below autograd: what the device's dispatch table would be asked.

    `keeps_values` says that tensors hold what they would on the device: then values of small
    integer and bool arguments are kept, those of a configuration's first call.

    `phase` is set by whoever runs the step; ops that autograd runs are backward whatever it says.
    A backward op belongs to the line of the forward op whose autograd node it runs for.
    """

    def __init__(
        self,
        locate: Locate,
        placement: Placement,
        fallbacks: frozenset[str] = frozenset(),
        *,
        keeps_values: bool = False,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.phase: Phase = "forward"
        self.paused = False
        self._locate = locate
        self._placement = placement
        self._fallbacks = fallbacks
        self._keeps_values = keeps_values
        self._rows: dict[Any, int] = {}
        self._table: list[_Row] = []
        self._steps: list[Step] = []
        self._values = Values()
        self._inside: Inside | None = None
        """Of the op that is being run, where its configuration is new."""
        self._on_host: set[int] = set()
        """Sequence numbers of nodes that autograd made on CPU copies, inside a fallback."""
        self._forward: dict[int, Location | None] = {}
        """Sequence number of an autograd node → place of the op that made it."""

    def name(self, tensors: Iterable[tuple[str, Tensor]], role: str) -> None:
        """Tells what storages that exist before the step are: parameters, buffers, inputs."""
        for name, tensor in tensors:
            self._values.index(tensor, role, name)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if self.paused or func.namespace in _BOOKKEEPING:
            return func(*args, **kwargs)
        # Function modes answer questions about devices for the user's code; here the truth counts.
        with torch._C.DisableTorchFunction():
            if self._runs_on_host():
                return func(*args, **kwargs)
            if func is _FRESH and self._placement.creating == "host":
                self._placement.mark_host(args[0])
            phase, place = self._context()
            tensors, key = self._signature(func, args, kwargs, phase)
            reads = tuple(self._values.index(tensor, "constant") for tensor in tensors)
            row = self._rows.get((key, _aliases(reads)))
            before = None if row is not None else self._inputs(func, args, kwargs)
            self._inside = Inside() if row is None else None
            result = self._perform(func, args, kwargs)
            self._place_results(func, tensors, result)
            if row is None:
                assert before is not None
                row = self._add(func, phase, before, result, (key, _aliases(reads)))
            self._count(row, place, reads, result, phase)
            self._ran(row, place, result)
            return result

    def _perform(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the op itself."""
        if self._fallbacks and describe.op_name(func) in self._fallbacks:
            return self._fall_back(func, args, kwargs)
        if self._inside is not None:
            return self._inside.run(func, args, kwargs)
        return func(*args, **kwargs)

    def _ran(self, row: int, place: Location | None, result: Any) -> None:
        """For who wants to know of every call: its row, where it stands, and what it gave."""

    def _fall_back(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A composite that is sent to the CPU is differentiated there, op by op."""
        made = sequence_number()
        with autograd_seen():
            result = func(*args, **kwargs)
        self._on_host.update(range(made, sequence_number()))
        return result

    def _runs_on_host(self) -> bool:
        """Whether autograd runs the backward of what a fallback computed, on its CPU copies."""
        node: Any = torch._C._current_autograd_node() if self._on_host else None
        return node is not None and node._sequence_nr() in self._on_host

    def _context(self) -> tuple[Phase, Location | None]:
        node: Any = torch._C._current_autograd_node()  # None outside a backward pass
        if node is not None:
            number = node._sequence_nr()
            return "backward", self._forward.get(number) or self._locate("backward")
        place = self._locate(self.phase)
        if torch.is_grad_enabled():
            # An op's node is numbered before its backend kernel is called: the first op to see a
            # number made the node.
            self._forward.setdefault(sequence_number() - 1, place)
        return self.phase, place

    def _signature(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], phase: Phase
    ) -> tuple[list[Tensor], tuple[Any, ...]]:
        """Tensor arguments in order, and a hashable key that is equal for equal configurations."""
        tensors: list[Tensor] = []
        key: list[Any] = [func, phase, self._placement.creating]
        for value in (*args, *kwargs.values()) if kwargs else args:
            self._sign(value, tensors, key)
        if kwargs:
            key.append(tuple(kwargs))
        return tensors, tuple(key)

    def _sign(self, value: Any, tensors: list[Tensor], key: list[Any]) -> None:
        if isinstance(value, Tensor):
            tensors.append(value)
            key.append(describe.tensor_key(value, self._placement.is_host(value)))
        elif isinstance(value, list | tuple):
            key.append(len(value))
            for item in value:
                self._sign(item, tensors, key)
        else:
            key.append((type(value), value))

    def _inputs(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Arguments:
        """Described before the call, which may change its arguments in place."""
        arguments = describe.schema_arguments(func, args, kwargs)
        named = [pair for name, v in arguments.items() for pair in describe.tensors_in(name, v)]
        device = "cpu" if self._placement.creating == "host" else "mps"
        attributes = {
            name: describe.attribute(value, device)
            for name, value in arguments.items()
            if not any(True for _ in describe.tensors_in(name, value))
        }
        values = steering_values(named) if self._keeps_values else {}
        return _Arguments(self._specs(named), attributes, values)

    def _specs(self, named: list[tuple[str, Tensor]]) -> tuple[TensorSpec, ...]:
        first: dict[int, int] = {}
        specs = []
        for position, (name, tensor) in enumerate(named):
            value = self._values.index(tensor, "activation")
            alias = first.setdefault(value, position)
            specs.append(
                describe.tensor_spec(
                    name,
                    tensor,
                    host=self._placement.is_host(tensor),
                    alias=alias if alias < position else None,
                )
            )
        return tuple(specs)

    def _place_results(self, func: Any, tensors: list[Tensor], result: Any) -> None:
        """What is computed from host tensors only stays there, unless the call moves it."""
        is_host, place = self._placement.is_host, self._placement.creating
        from_host = bool(tensors) and all(is_host(tensor) for tensor in tensors)
        if place == "host" or (place is None and from_host):
            for _, tensor in _results(result):
                self._placement.mark_host(tensor)
        elif func is torch.ops.aten._pack_padded_sequence.default:
            # Batch sizes are for the host's loop over time, wherever the sequences are.
            self._placement.mark_host(result[1])

    def _add(
        self,
        func: Any,
        phase: Phase,
        before: _Arguments,
        result: Any,
        key: Any,
    ) -> int:
        outputs = self._specs(list(_results(result)))
        followed = self._inside.calls if self._inside is not None else {}
        inner = {op: tuple(calls) for op, calls in followed.items()}
        self._rows[key] = len(self._table)
        row = _Row(func, phase, before.specs, before.attributes, outputs, before.values, inner)
        self._table.append(row)
        return len(self._table) - 1

    def _count(
        self, index: int, place: Location | None, reads: tuple[int, ...], result: Any, phase: Phase
    ) -> None:
        row = self._table[index]
        row.calls += 1
        location = -1
        if place is not None:
            known = row.locations.get(id(place))
            if known is None:
                known = row.locations[id(place)] = len(row.places)
                row.places.append(place)
            location = known
        role = "optimizer" if phase == "optimizer" else "activation"
        writes = tuple(self._values.index(tensor, role) for _, tensor in _results(result))
        self._steps.append(Step(op=index, location=location, reads=reads, writes=writes))

    def calls(self) -> tuple[OpCall, ...]:
        """Every configuration seen, in order of first execution."""
        return tuple(self.call(index) for index in range(len(self._table)))

    def call(self, index: int) -> OpCall:
        """One configuration, as far as it has been seen."""
        row = self._table[index]
        return OpCall(
            op=describe.op_name(row.func),
            phase=row.phase,
            inputs=row.inputs,
            outputs=row.outputs,
            attributes=row.attributes,
            calls=row.calls,
            locations=tuple(row.places),
            values=row.values,
            inner=row.inner,
        )

    def steps(self) -> tuple[Step, ...]:
        """Every call in order."""
        return tuple(self._steps)

    def values(self) -> tuple[Value, ...]:
        """Every storage seen."""
        return tuple(self._values.records())


def _aliases(reads: tuple[int, ...]) -> tuple[int, ...] | None:
    """Which arguments share storage, by position; None when none do."""
    if len(set(reads)) == len(reads):
        return None
    return tuple(map(reads.index, reads))


def _results(result: Any) -> Iterator[tuple[str, Tensor]]:
    """Returned tensors, named by position."""
    if isinstance(result, Tensor):
        yield "0", result
    elif isinstance(result, list | tuple):
        for index, item in enumerate(result):
            yield from describe.tensors_in(str(index), item)
