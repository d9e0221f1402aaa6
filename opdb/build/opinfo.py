"""Which overloads PyTorch's OpInfo entries reach, by dtype and direction.

Entries of the installed torch run on the CPU, below autograd and composites that decompose. What
is dispatched there is what MPS' dispatch table would be asked.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves

from opdb import tables
from opdb.facts import plain
from opdb.issues.book import default
from opdb.issues.match import applies
from scanner.capture.graph import merged
from scanner.capture.placement import Placement
from scanner.capture.recorder import Recorder
from scanner.records import OpCall, Target

__all__ = ["DTYPES", "SAMPLES", "Reached", "reached", "table"]

DTYPES = (
    *("float32", "float16", "bfloat16", "float64", "complex64", "complex32", "complex128"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
)
SAMPLES = 40
"""Of an entry, at most: what OpInfo lists first are the ordinary cases."""

_WIDE = frozenset({"float64", "complex128"})
_ANY = Target(framework="torch", version=torch.__version__)


class Reached(NamedTuple):
    """What one entry reaches in one direction, for dtypes that behave alike."""

    name: str
    variant: str
    """`-` for none."""
    direction: str
    """`forward`, or `gradient`: forward and backward."""
    dtypes: str
    """Joined by commas."""
    ops: str
    """Overloads, plain names joined by commas."""
    issues: str
    """Known issues whose condition some sample fulfils, `-` for none."""
    wide: str
    """`wide` when float64 arises from narrower inputs, else `-`."""


def table() -> str:
    """Text of the data file, sorted."""
    release = torch.__version__.partition("+")[0]
    lines = sorted("\t".join((*found, release)) for found in reached())
    return tables.OPINFO.header + "".join(f"{line}\n" for line in lines)


def reached(names: frozenset[str] = frozenset()) -> Iterator[Reached]:
    """Everything for the entries with these names, or all."""
    from torch.testing._internal.common_methods_invocations import op_db

    for info in op_db:
        if not names or info.name in names:
            yield from _entry(info)


def _entry(info: Any) -> Iterator[Reached]:
    for direction in ("forward", "gradient"):
        groups: dict[tuple[str, str, str], list[str]] = {}
        for dtype in _dtypes(info, direction):
            if calls := _calls(info, getattr(torch, dtype), direction):
                groups.setdefault(_summary(calls, dtype), []).append(dtype)
        for (ops, issues, wide), dtypes in groups.items():
            variant = info.variant_test_name or "-"
            yield Reached(info.name, variant, direction, ",".join(dtypes), ops, issues, wide)


def _dtypes(info: Any, direction: str) -> list[str]:
    if direction == "gradient" and not info.supports_autograd:
        return []
    kinds = info.dtypes if direction == "forward" else info.backward_dtypes
    kinds = {kind for kind in kinds if direction == "forward" or _differentiable(kind)}
    return [name for name in DTYPES if getattr(torch, name) in kinds]


def _differentiable(kind: torch.dtype) -> bool:
    return kind.is_floating_point or kind.is_complex


def _summary(calls: tuple[OpCall, ...], dtype: str) -> tuple[str, str, str]:
    issues = {
        entry.issue.id
        for call in calls
        for entry in default.about(call.op)
        if applies(entry, call, _ANY)
    }
    made = {spec.dtype for call in calls for spec in (*call.inputs, *call.outputs)}
    wide = "wide" if made & _WIDE and dtype not in _WIDE else "-"
    ops = sorted({plain(call.op) for call in calls})
    return ",".join(ops), ",".join(sorted(issues)) or "-", wide


def _calls(info: Any, kind: torch.dtype, direction: str) -> tuple[OpCall, ...]:
    recorder = Recorder(lambda _phase: None, Placement(torch.device("cpu")))
    gradient = direction == "gradient"
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        for sample in _samples(info, kind, gradient):
            _record(recorder, info, sample, gradient=gradient)
    return merged(recorder.calls())[0]


def _samples(info: Any, kind: torch.dtype, gradient: bool) -> list[Any]:
    try:
        return list(islice(info.sample_inputs("cpu", kind, requires_grad=gradient), SAMPLES))
    except Exception:  # a few generators need what this machine lacks; the entry is then empty
        return []


def _record(recorder: Recorder, info: Any, sample: Any, *, gradient: bool) -> None:
    try:
        with torch.set_grad_enabled(gradient), recorder:
            result = info.op(sample.input, *sample.args, **sample.kwargs)
            if gradient:
                _backward(result)
    except Exception:  # refused by the CPU: no test of PyTorch runs it
        return


def _backward(result: Any) -> None:
    outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    outputs = [output for output in outputs if output.requires_grad]
    if outputs:
        torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])
