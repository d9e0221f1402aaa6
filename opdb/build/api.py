"""Which overloads a call of the public API reaches on MPS, by its name alone and by release.

Three sources, each row names its own:

- `opinfo`: samples of PyTorch's OpInfo entries, run forward in the world of `opdb.build.opinfo`.
  What *every* sample dispatches, a call dispatches whatever its arguments are.
- `moduleinfo`: the same for samples of PyTorch's ModuleInfo entries (`torch.nn.CTCLoss`).
- `schema`: functions without such an entry, from `native_functions.yaml`. A call dispatches one of
  the overloads of its name; names with an overload that is made of other calls are left out.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torchgen  # type: ignore[import-untyped]
from torch.utils._pytree import tree_leaves

from opdb import api, intervals, native_functions, query, tables
from opdb.build import opinfo, write
from opdb.build.releases import RELEASES
from opdb.facts import plain
from scanner.capture.placement import Placement
from scanner.capture.protocol import Profile
from scanner.capture.recorder import Recorder

__all__ = ["Reach", "render", "table"]

_KINDS = (torch.float32, torch.complex64, torch.int64, torch.bool)
"""The first of these that an entry supports is run."""
_SAMPLES = 40
"""Of an entry, at most."""
_PREFIXES = {"linalg": "linalg_", "fft": "fft_", "special": "special_", "nn": ""}
"""Python module of a native function → what its name begins with there."""
_YAML = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"

Recorded = dict[str, frozenset[str]]
"""Qualified name → overloads that every sample dispatched."""


class Reach(NamedTuple):
    """What a call reaches."""

    name: str
    """Qualified: `torch.linalg.eigh`, `torch.Tensor.kthvalue`, `torch.nn.CTCLoss`."""
    always: str
    """Overloads that every call dispatches, plain names joined by commas, `-` for none."""
    one_of: str
    """Overloads of which a call dispatches one, `-` for none."""
    source: str


class _Call(NamedTuple):
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def table(jobs: int, progress: Callable[[str], object] = lambda _: None) -> str:
    """Text of the data file."""
    facts: write.Rows = {}
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for rows, releases in pool.imap_unordered(_recorded, opinfo.profiles(), chunksize=1):
            progress(f"{', '.join(releases)}: {len(rows)} names recorded")
            names = {row.name for row in rows}
            for release in releases:
                by_schema = (row for row in _by_schema(release) if row.name not in names)
                for row in (*rows, *by_schema):
                    facts.setdefault(row, set()).add(release)
    return render(facts)


def _recorded(job: tuple[Profile, list[str]]) -> tuple[list[Reach], list[str]]:
    """What samples reach on releases with one profile."""
    from torch.testing._internal.common_modules import module_db  # asks for macOS: not in a world

    profile, releases = job
    with opinfo.as_on(profile) as placement, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        functions = _by_opinfo(placement)
        modules = _by_moduleinfo(module_db, placement)
    rows = [*_rows(functions, "opinfo"), *_rows(_confirmed(modules, functions), "moduleinfo")]
    return rows, releases


def _confirmed(modules: Recorded, functions: Recorded) -> Recorded:
    """What a module's function always dispatches as well: samples of modules are few."""
    alike = {
        _squeezed(name): ops
        for name, ops in functions.items()
        if name.startswith("torch.nn.functional.")
    }
    return {name: ops & alike.get(_squeezed(name), frozenset()) for name, ops in modules.items()}


def _squeezed(name: str) -> str:
    """`torch.nn.CTCLoss` and `torch.nn.functional.ctc_loss` are both `ctcloss`."""
    return name.rpartition(".")[2].replace("_", "").lower()


def render(facts: write.Rows) -> str:
    """The table's text: what is reached, and in which releases that does not run on MPS."""
    judged: write.Rows = {}
    for row, releases in facts.items():
        judged[row + _where(Reach(*row), releases)] = releases
    return write.render(tables.API, judged, RELEASES)


def _where(reach: Reach, releases: Collection[str]) -> tuple[str, str]:
    """Releases in which a call raises, and in which it runs on the CPU; `-` for none."""
    always, one_of = _ops(reach.always), _ops(reach.one_of)
    status: dict[str, str] = {each: api.judge(always, one_of, each).status for each in releases}
    return _ranges(status, "unsupported"), _ranges(status, "fallback")


def _ranges(status: dict[str, str], wanted: str) -> str:
    found = [release for release, each in status.items() if each == wanted]
    return intervals.encode(found, RELEASES) if found else "-"


def _rows(recorded: Recorded, source: str) -> Iterator[Reach]:
    for name, ops in recorded.items():
        if ops:
            yield Reach(name, ",".join(sorted(ops)), "-", source)


def _by_opinfo(placement: Placement) -> Recorded:
    found: Recorded = {}
    # Other variants of an entry give arguments that most calls do not.
    plain_entries = {info.name for info in opinfo.entries() if not info.variant_test_name}
    for info in opinfo.entries():
        kind = _kind(info.dtypes)
        if kind is None or info.name not in plain_entries:
            continue
        drawn = opinfo.samples(info, kind, False, _SAMPLES)
        calls = [_Call(info.op, (each.input, *each.args), each.kwargs) for each in drawn]
        if (ops := _common(calls, placement)) is not None:
            for name in _names_of(info):
                found[name] = found.get(name, ops) & ops
    return found


def _by_moduleinfo(entries: Iterable[Any], placement: Placement) -> Recorded:
    found: Recorded = {}
    for info in entries:
        name = f"torch.{info.name}"
        kind = _kind(info.dtypes)
        if kind is not None and (ops := _common(_of_module(info, kind), placement)) is not None:
            found[name] = found.get(name, ops) & ops
    return found


def _of_module(info: Any, kind: torch.dtype) -> Iterator[_Call]:
    try:
        drawn = info.module_inputs_func(
            info, device="mps", dtype=kind, requires_grad=False, training=True
        )
        for sample in islice(drawn, _SAMPLES):
            made = sample.constructor_input
            module = info.module_cls(*made.args, **made.kwargs).to("mps", kind)
            if (given := sample.forward_input) is not None:
                yield _Call(module, tuple(given.args), given.kwargs)
    except Exception:  # a few generators need what this machine lacks
        return


def _common(calls: Iterable[_Call], placement: Placement) -> frozenset[str] | None:
    """What all calls with tensors that have elements dispatch; None when there is none."""
    common: frozenset[str] | None = None
    for function, args, kwargs in calls:
        leaves = [each for each in tree_leaves((args, kwargs)) if _is_tensor(each)]
        if not leaves or any(leaf.numel() == 0 for leaf in leaves):
            continue
        recorder = Recorder(lambda _phase: None, placement)
        try:
            with torch.no_grad(), recorder:
                function(*args, **kwargs)
        except Exception:  # refused by the CPU: no test of PyTorch runs it
            continue
        ops = frozenset(plain(call.op) for call in recorder.calls())
        common = ops if common is None else common & ops
    return common


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _kind(dtypes: Iterable[torch.dtype]) -> torch.dtype | None:
    return next((kind for kind in _KINDS if kind in dtypes), None)


def _names_of(info: Any) -> list[str]:
    """What the entry's function is called in public; its method, when there is one."""
    names = [info.name, *(alias.name.removeprefix("torch.") for alias in info.aliases)]
    found = [f"torch.{name}" for name in names if _is_public(f"torch.{name}")]
    return found + [f"torch.Tensor.{name}" for name in names if _is_method(name)]


def _is_method(name: str) -> bool:
    return (
        name.isidentifier()
        and not name.startswith("_")
        and callable(getattr(torch.Tensor, name, None))
    )


def _is_public(qualified: str) -> bool:
    place: Any = torch
    for part in qualified.split(".")[1:]:
        place = None if part.startswith("_") else getattr(place, part, None)
    return callable(place)


def _by_schema(release: str) -> Iterator[Reach]:
    for name, overloads in sorted(_declared_names().items()):
        facts = [query.lookup(overload, release) for overload in sorted(overloads)]
        kernels = [fact for fact in facts if fact.exists and fact.variant in _CALLED]
        # Not what is made of other calls, raises on all dense tensors, or is another vendor's.
        if kernels and all(fact.composite is None and fact.cpu for fact in kernels):
            yield Reach(name, "-", ",".join(plain(fact.op) for fact in kernels), "schema")


_CALLED = frozenset({"functional", "inplace", "mutable"})
"""Variants that a call without `out=` reaches."""


def _declared_names() -> dict[str, set[str]]:
    """Public name → overloads of the native function behind it."""
    found: dict[str, set[str]] = {}
    for entry in native_functions.load(_YAML):
        overload = entry["func"].partition("(")[0]
        base, _, suffix = overload.partition(".")
        # Not with names of dimensions, nor what makes tensors: it does so on the CPU, unless asked.
        if "imname" in suffix or "Tensor" not in entry["func"].partition(" -> ")[0]:
            continue
        variants = str(entry.get("variants", "function"))
        for name in _public_names(base, entry.get("python_module", ""), variants):
            found.setdefault(name, set()).add(overload)
    return found


def _public_names(base: str, module: str, variants: str) -> Iterator[str]:
    if "function" in variants:
        place = {"": "torch", "nn": "torch.nn.functional"}.get(module, f"torch.{module}")
        name = f"{place}.{base.removeprefix(_PREFIXES.get(module, ''))}"
        if _is_public(name):
            yield name
    if "method" in variants and _is_method(base):
        yield f"torch.Tensor.{base}"


def _ops(text: str) -> list[str]:
    return [] if text == "-" else text.split(",")
