"""Makes every ATen call of PyTorch's samples twice: on the CPU, and by a simulated release."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from opdb.build.execution.arguments import (
    WIDE,
    by_name,
    copied,
    main_of,
    names_of,
    send_to_device,
    upload_all,
)
from opdb.build.execution.layouts import RESHAPED, relaid
from opdb.build.execution.observation import Observation
from opdb.build.execution.values import compared, flat, in_double, tupled
from scanner.backends.sim_calls import named
from scanner.probe.opinfo import entries
from scanner.sim import trace
from scanner.sim.call import Call, SimTensor
from scanner.sim.entry import ArgumentError
from scanner.sim.machine.faults import Fault
from scanner.sim.session import Session

__all__ = ["RAN", "observe"]

_PLUMBING = frozenset(
    {
        "detach", "view", "empty", "_unsafe_view", "alias", "lift_fresh", "lift", "empty_like",
        "empty_strided", "new_empty", "new_empty_strided", "resize_", "set_", "empty_permuted",
        "_local_scalar_dense",
    }
)  # fmt: skip
RAN = ("native-shader", "native-graph", "fallback")
_LONGEST = 300


def observe(
    session: Session,
    dtype: str,
    samples: int,
    layouts: Iterable[str] = (),
    names: Iterable[str] = (),
) -> Iterator[Observation]:
    """The calls of the first samples of OpInfo entries, and the first of each in other `layouts`.

    Calls that only move plumbing, and those that the CPU refuses, are left out.
    """
    kind = getattr(torch, dtype)
    sweep = _Sweep(session, tuple(layouts))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info in entries(names):
            if kind in info.dtypes:
                _play(sweep, info, kind, samples)
                yield from sweep.taken()


def _play(sweep: _Sweep, info: Any, kind: torch.dtype, count: int) -> None:
    torch.manual_seed(0)
    sweep.entry = f"{info.name}.{info.variant_test_name}".rstrip(".")
    try:
        samples = list(islice(info.sample_inputs("cpu", kind, requires_grad=False), count))
    except Exception:  # a few generators need what this machine lacks; the entry is then empty
        return
    for sample in samples:
        sweep.begin()
        try:
            with torch.no_grad(), sweep:
                info.op(sample.input, *sample.args, **sample.kwargs)
        except Exception:  # refused by the CPU: nothing to compare with
            continue


class _Sweep(TorchDispatchMode):
    """Every overload once in a sample, and once in each layout at all."""

    def __init__(self, session: Session, layouts: tuple[str, ...]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._layouts = layouts
        self.entry = ""
        self._session = session
        self._rows: list[Observation] = []
        self._seen: set[str] = set()
        self._relaid: set[tuple[str, str]] = set()

    def begin(self) -> None:
        """A new sample."""
        self._seen.clear()

    def taken(self) -> list[Observation]:
        """What was seen since the last call."""
        rows, self._rows = self._rows, []
        return rows

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Runs the call; its result is the CPU's."""
        kwargs = kwargs or {}
        op, name = names_of(function)
        if function.namespace != "aten" or op in self._seen or name in _PLUMBING:
            return function(*args, **kwargs)
        self._seen.add(op)
        if self._session.schema(op) is None:
            return function(*args, **kwargs)
        before = copied((args, kwargs))
        expected, row = self._both(function, args, kwargs, "sampled")
        self._rows.append(row)
        key = (op, row.dtype)
        if key not in self._relaid and not row.empty and not row.wide:
            self._relaid.add(key)
            self._rows.extend(self._in_layouts(function, before))
        return expected

    def _in_layouts(self, function: Any, before: Any) -> Iterator[Observation]:
        given = by_name(function, *before)
        main = main_of(given)
        if main is None:
            return
        # An internal operator trusts its caller with shapes, and may crash: `_chunk_cat` does.
        internal = names_of(function)[1].startswith("_")
        layouts = [each for each in self._layouts if not (internal and each in RESHAPED)]
        for layout in layouts:
            changed = relaid(before, main, layout)
            if changed is None:
                continue
            try:
                _, row = self._both(function, changed[0], changed[1], layout)
            except Exception:  # refused by the CPU
                continue
            yield row

    def _both(self, function: Any, args: Any, kwargs: Any, layout: str) -> tuple[Any, Observation]:
        """The CPU's result, and what the release did with the same arguments."""
        op, _ = names_of(function)
        given = named(op, self._session.schema(op), args, dict(kwargs))
        send_to_device(function, given)
        theirs = by_name(function, args, kwargs)
        try:
            uploaded, lost = upload_all(self._session, given), ""
        except Fault as error:
            uploaded, lost = {}, error.reason
        before = copied((args, kwargs)) if layout == "sampled" else None
        expected = function(*args, **kwargs)
        call = Call("unknown", "unknown", message=lost) if lost else self._called(op, uploaded)
        value = ""
        if before is not None and call.outcome in RAN:
            value = self._value(function, before, (call, uploaded), (expected, theirs))
        return expected, self._row(op, call, layout, theirs, expected, value)

    def _called(self, op: str, uploaded: dict[str, Any]) -> Call:
        try:
            return self._session.call(op, (), uploaded)
        except ArgumentError as error:  # the release spells the operator's arguments otherwise
            return Call("unknown", "unknown", message=str(error))

    def _row(
        self, op: str, call: Call, layout: str, given: dict[str, Any], expected: Any, value: str
    ) -> Observation:
        main = main_of(given)
        tensors = [leaf for leaf in tree_leaves((given, expected)) if isinstance(leaf, Tensor)]
        shown = main if main is not None else next(iter(flat(tupled(expected))), None)
        asked = {leaf for leaf in tree_leaves(given) if isinstance(leaf, torch.dtype)}
        asked |= {tensor.dtype for tensor in tensors if tensor.dim()}
        asked |= {tensor.dtype for tensor in flat(tupled(expected))}
        commits = [event for event in call.events if isinstance(event, trace.Commit)]
        return Observation(
            entry=self.entry,
            op=op,
            dtype="none" if shown is None else str(shown.dtype).removeprefix("torch."),
            outcome=call.outcome,
            path=call.path,
            layout=layout,
            empty=bool(tensors) and not any(tensor.numel() for tensor in tensors),
            wide=bool(WIDE & asked),
            error=call.error,
            message=call.message[:_LONGEST],
            fallbacks=tuple(
                dict.fromkeys((*call.fallbacks, *map("LAPACK {}".format, call.routines)))
            ),
            commits=len(commits),
            waits=sum(event.wait for event in commits),
            launches=sum(isinstance(event, trace.Launch) for event in call.events),
            graphs=sum(isinstance(event, trace.GraphRun) for event in call.events),
            value=value,
            notes=len(call.notes),
            findings=call.findings[:1],
        )

    def _value(self, function: Any, before: Any, made: Any, expected: Any) -> str:
        if torch.Tag.nondeterministic_seeded in function.tags:
            return "random"
        call, uploaded = made
        result, given = expected
        written = [
            a.name for a in function._schema.arguments if a.alias_info and a.alias_info.is_write
        ]
        ours = flat(call.outputs) + flat([uploaded.get(name) for name in written])
        theirs = flat(tupled(result)) + flat([given.get(name) for name in written])
        pairs = [
            (self._content(device), host.resolve_conj().resolve_neg())
            for device, host in zip(ours, theirs, strict=False)
            if host.layout == torch.strided
        ]
        wide = in_double(function, *before)
        return compared(names_of(function)[1], before[0], pairs, wide)

    def _content(self, tensor: SimTensor) -> Tensor:
        found: Tensor = self._session.download(tensor).torch().resolve_conj().resolve_neg()
        return found
