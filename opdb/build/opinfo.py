"""Which overloads PyTorch's OpInfo entries reach on MPS, by dtype, direction and release.

Entries of the installed torch run on the CPU, in a world where an Apple GPU seems to be there and
composite ops are dispatched whole as the release does it. What is dispatched below autograd is what
MPS' dispatch table would be asked.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves

from opdb import intervals, query, store, tables
from opdb.build import write
from opdb.build.later_samples import later_calls
from opdb.build.releases import RELEASES
from opdb.facts import plain
from opdb.issues.book import default
from opdb.issues.match import applies
from scanner.capture.graph import merged
from scanner.capture.holds import held
from scanner.capture.placement import Placement
from scanner.capture.protocol import Profile
from scanner.capture.recorder import Recorder
from scanner.capture.world import world
from scanner.errors import UsageError
from scanner.judge.profile import profile_for
from scanner.records import OpCall, Target

__all__ = [
    "DTYPES",
    "SAMPLES",
    "Reached",
    "as_on",
    "entries",
    "profiles",
    "reached",
    "samples",
    "table",
]

DTYPES = (
    *("float32", "float16", "bfloat16", "float64", "complex64", "complex32", "complex128"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
)
SAMPLES = 120
"""Of an entry, at most: norms that need singular values come late among their 116."""

_WIDE = frozenset({"float64", "complex128"})
_WIDE_KINDS = frozenset({torch.float64, torch.complex128})
_ANY = Target(framework="torch", version=torch.__version__)
_Progress = Callable[[str], object]


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
    """Overloads, plain names joined by commas; `linalg_pinv.atol_rtol_tensor>linalg_eigh` is a call
    that the kernel of a composite one makes and that `paths.tsv` has."""
    issues: str
    """Known issues whose condition some sample fulfils, `-` for none."""
    wide: str
    """`wide` when float64 arises from narrower inputs, else `-`."""


def table(progress: _Progress = lambda _: None, only: Collection[str] = ()) -> str:
    """Text of the data file; with `only`, other entries keep the lines that they have.

    An entry is recorded again for another lowering profile only where a glance at it differs.
    UsageError where another torch is installed than the data say.
    """
    if torch.__version__.partition("+")[0] != tables.OPINFO_TORCH:
        raise UsageError(
            f"opinfo is recorded with torch {tables.OPINFO_TORCH}, and {torch.__version__} is here",
            remedy="Change OPINFO_TORCH in opdb/tables.py to record all entries with another one.",
        )
    facts: write.Rows = dict(_kept(only)) if only else {}
    full: dict[tuple[int, tuple[Reached, ...]], tuple[Reached, ...]] = {}
    for profile, releases in profiles():
        progress(f"{profile.id}: {', '.join(releases)}")
        with as_on(profile) as placement:
            for number, info in enumerate(entries(only)):
                look = tuple(_entry(info, placement, ("float32",), 1))
                key = (number, look)
                if key not in full:
                    full[key] = tuple(_entry(info, placement, DTYPES, SAMPLES))
                for row in full[key]:
                    facts.setdefault(row, set()).update(releases)
    return write.render(tables.OPINFO, facts, RELEASES)


def _kept(without: Collection[str]) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    places = store.default.places
    for _, fields in tables.lines(store.default.folder / tables.OPINFO.file, tables.OPINFO):
        if fields[0] not in without:
            spans = intervals.decode(fields[-1], places)
            held = {name for low, high in spans for name in RELEASES if low <= places[name] <= high}
            yield Reached(*fields[:-1]), held


def reached(release: str, names: Iterable[str]) -> Iterator[Reached]:
    """Everything for some entries, as in a release."""
    with as_on(profile_for(Target(framework="torch", version=release), query)) as placement:
        for info in entries(frozenset(names)):
            yield from _entry(info, placement, DTYPES, SAMPLES)


def profiles() -> list[tuple[Profile, list[str]]]:
    """Lowering profiles, newest first, with the releases that have each."""
    found: dict[str, tuple[Profile, list[str]]] = {}
    for release in reversed(RELEASES):
        profile = profile_for(Target(framework="torch", version=release), query)
        found.setdefault(profile.id, (profile, []))[1].append(release)
    return list(found.values())


@contextmanager
def as_on(profile: Profile) -> Iterator[Placement]:
    """A world in which ops are dispatched as on a release with this profile."""
    with world("real") as placement, held(frozenset(profile.holds)):
        yield placement


def entries(only: Collection[str] = ()) -> list[Any]:
    """Entries of OpInfo, all or those with these names."""
    from torch.testing._internal.common_methods_invocations import op_db

    return [info for info in op_db if not only or info.name in only]


def _entry(
    info: Any, placement: Placement, dtypes: Iterable[str], samples: int
) -> Iterator[Reached]:
    for direction in ("forward", "gradient"):
        groups: dict[tuple[str, str, str], list[str]] = {}
        for dtype in _dtypes(info, direction, dtypes):
            kind = getattr(torch, dtype)
            if calls := _calls(info, placement, kind, direction == "gradient", samples):
                calls = (*calls, *later_calls(info.name, info.variant_test_name, dtype))
                groups.setdefault(_summary(calls, dtype), []).append(dtype)
        for (ops, issues, wide), alike in groups.items():
            variant = info.variant_test_name or "-"
            yield Reached(info.name, variant, direction, ",".join(alike), ops, issues, wide)


def _dtypes(info: Any, direction: str, wanted: Iterable[str]) -> list[str]:
    if direction == "gradient" and not info.supports_autograd:
        return []
    kinds = info.dtypes if direction == "forward" else info.backward_dtypes
    kinds = {kind for kind in kinds if direction == "forward" or _differentiable(kind)}
    return [name for name in wanted if getattr(torch, name) in kinds]


def _differentiable(kind: torch.dtype) -> bool:
    return kind.is_floating_point or kind.is_complex


def _summary(calls: tuple[OpCall, ...], dtype: str) -> tuple[str, str, str]:
    issues = {
        entry.issue.id
        for call in calls
        for entry in default.about(call.op)
        if applies(entry, call, _ANY)
    }
    specs = (spec for call in calls for spec in (*call.inputs, *call.outputs))
    made = {spec.dtype for spec in specs if spec.device != "cpu"}
    wide = "wide" if made & _WIDE and dtype not in _WIDE else "-"
    ops = sorted({name for call in calls for name in (plain(call.op), *_inner(call))})
    return ",".join(ops), ",".join(sorted(issues)) or "-", wide


def _inner(call: OpCall) -> Iterator[str]:
    for op, called in call.inner.items():
        for other in called:
            if (op, other) in query.leading():
                yield f"{plain(op)}>{plain(other)}"


def _calls(
    info: Any, placement: Placement, kind: torch.dtype, gradient: bool, count: int
) -> tuple[OpCall, ...]:
    recorder = Recorder(lambda _phase: None, placement)
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        for sample in samples(info, kind, gradient, count):
            _record(recorder, info, sample, gradient=gradient)
    return merged(recorder.calls())[0]


def samples(info: Any, kind: torch.dtype, gradient: bool, count: int) -> list[Any]:
    """Samples that are about this dtype: not those that ask for float64 themselves."""
    try:
        made = info.sample_inputs("mps", kind, requires_grad=gradient)
        return [sample for sample in islice(made, count) if not _asks_for_wide(sample, kind)]
    except Exception:  # a few generators need what this machine lacks; the entry is then empty
        return []


def _asks_for_wide(sample: Any, kind: torch.dtype) -> bool:
    leaves = tree_leaves((sample.input, sample.args, sample.kwargs))
    kinds = {
        leaf.dtype if isinstance(leaf, torch.Tensor) else leaf
        for leaf in leaves
        if isinstance(leaf, torch.Tensor | torch.dtype)
    }
    return kind not in _WIDE_KINDS and bool(kinds & _WIDE_KINDS)


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
