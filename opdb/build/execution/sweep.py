"""Makes every ATen call of PyTorch's samples twice: on the CPU, and by a simulated release."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from opdb.build.execution.layouts import RESHAPED, relaid
from opdb.build.execution.observation import Observation
from opdb.build.execution.values import compared, flat, in_double, tupled
from opdb.operands import main_operand
from scanner.backends.sim_calls import named
from scanner.probe.opinfo import entries
from scanner.sim import trace
from scanner.sim.call import Call, SimTensor
from scanner.sim.entry import ArgumentError
from scanner.sim.machine.faults import Fault
from scanner.sim.session import Session
from scanner.sim.values import from_torch

__all__ = ["RAN", "observe"]

_PLUMBING = frozenset(
    {
        "detach", "view", "empty", "_unsafe_view", "alias", "lift_fresh", "lift", "empty_like",
        "empty_strided", "new_empty", "new_empty_strided", "resize_", "set_", "empty_permuted",
        "_local_scalar_dense",
    }
)  # fmt: skip
RAN = ("native-shader", "native-graph", "fallback")
_WIDE = {torch.float64, torch.complex128}
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
        op, name = _names(function)
        if function.namespace != "aten" or op in self._seen or name in _PLUMBING:
            return function(*args, **kwargs)
        self._seen.add(op)
        if self._session.schema(op) is None:
            return function(*args, **kwargs)
        before = _copied((args, kwargs))
        expected, row = self._both(function, args, kwargs, "sampled")
        self._rows.append(row)
        key = (op, row.dtype)
        if key not in self._relaid and not row.empty and not row.wide:
            self._relaid.add(key)
            self._rows.extend(self._in_layouts(function, before))
        return expected

    def _in_layouts(self, function: Any, before: Any) -> Iterator[Observation]:
        given = _by_name(function, *before)
        main = _main(given)
        if main is None:
            return
        # An internal operator trusts its caller with shapes, and may crash: `_chunk_cat` does.
        internal = _names(function)[1].startswith("_")
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
        op, _ = _names(function)
        given = named(op, self._session.schema(op), args, dict(kwargs))
        _send_to_device(function, given)
        theirs = _by_name(function, args, kwargs)
        try:
            uploaded, lost = _uploaded(self._session, given), ""
        except Fault as error:
            uploaded, lost = {}, error.reason
        before = _copied((args, kwargs)) if layout == "sampled" else None
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
        main = _main(given)
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
            wide=bool(_WIDE & asked),
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
        return compared(_names(function)[1], before[0], pairs, wide)

    def _content(self, tensor: SimTensor) -> Tensor:
        found: Tensor = self._session.download(tensor).torch().resolve_conj().resolve_neg()
        return found


def _names(function: Any) -> tuple[str, str]:
    """`aten::add.Tensor` and `add`."""
    schema = function._schema
    op = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
    return op, schema.name.split("::")[1]


def _by_name(function: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    names = (argument.name for argument in function._schema.arguments)
    return dict(zip(names, args, strict=False)) | dict(kwargs)


def _main(given: dict[str, Any]) -> Tensor | None:
    found: dict[str, Tensor] = {}
    for name, value in given.items():
        if isinstance(value, Tensor):
            found[name] = value
        elif isinstance(value, list | tuple):
            found |= {f"{name}[{i}]": v for i, v in enumerate(value) if isinstance(v, Tensor)}
    place = main_operand(list(found))
    return None if place is None else list(found.values())[place]


def _copied(values: Any) -> Any:
    return tree_map(lambda value: value.clone() if isinstance(value, Tensor) else value, values)


def _send_to_device(function: Any, given: dict[str, Any]) -> None:
    if any(argument.name == "device" for argument in function._schema.arguments):
        given["device"] = "mps"
    given.pop("pin_memory", None)


def _uploaded(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments with their tensors on the device; one tensor stays one."""
    known: dict[int, SimTensor] = {}

    def upload(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if id(value) not in known:
            scalar = value.dtype in _WIDE and value.dim() == 0
            known[id(value)] = session.upload(from_torch(value, "cpu" if scalar else "mps"))
        return known[id(value)]

    return {name: tree_map(upload, value) for name, value in given.items()}
