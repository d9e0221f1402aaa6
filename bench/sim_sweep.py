"""PyTorch's own samples through the simulator: what comes of each call, and what differs.

    python bench/sim_sweep.py --torch 2.15.0 --dtype float16 [--macos 26.2] [--samples 1] [names …]

Every ATen call that a sample makes on the CPU is made once more by the release. Values are held
against the CPU, and against the CPU in double where they differ. `--out FILE` keeps one JSON object
a call.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from sim_values import compared, flat, in_double, tupled
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from scanner.probe.opinfo import entries
from scanner.sim import host
from scanner.sim.call import SimTensor
from scanner.sim.launches import Shaders
from scanner.sim.prepare.prepared import cache_folder
from scanner.sim.session import Session
from scanner.sim.values import from_torch

_PLUMBING = frozenset(
    {
        "detach", "view", "empty", "_unsafe_view", "alias", "lift_fresh", "lift", "empty_like",
        "empty_strided", "new_empty", "new_empty_strided", "resize_", "set_", "empty_permuted",
        "_local_scalar_dense",
    }
)  # fmt: skip
_RAN = ("native-shader", "native-graph", "fallback")

Row = dict[str, Any]


class Sweep(TorchDispatchMode):
    """Makes every call twice: on the CPU, and by the release."""

    def __init__(self, session: Session, note: Callable[[Row], None]) -> None:
        super().__init__()
        self._session, self._note = session, note
        self._seen: set[str] = set()

    def begin(self) -> None:
        """A new sample: every overload is looked at once in it."""
        self._seen.clear()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        schema = function._schema
        op = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
        name = op.split("::")[1].split(".")[0]
        if function.namespace != "aten" or op in self._seen or name in _PLUMBING:
            return function(*args, **kwargs)
        self._seen.add(op)
        given = _named(schema, args, kwargs)
        uploaded = _uploaded(self._session, given)
        before = tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, (args, kwargs))
        expected = function(*args, **kwargs)
        call = self._session.call(op, (), uploaded)
        row: Row = {"op": op, "outcome": call.outcome, "path": call.path, "error": call.error}
        row |= {"message": call.message[:300], "findings": call.findings, "notes": call.notes}
        if call.outcome in _RAN:
            written = [a.name for a in schema.arguments if a.alias_info and a.alias_info.is_write]
            ours = flat(call.outputs) + flat([uploaded.get(n) for n in written])
            theirs = flat(tupled(expected)) + flat([given.get(n) for n in written])
            row["value"] = self._value(function, name, before, ours, theirs)
        self._note(row)
        return expected

    def _value(self, function: Any, name: str, before: Any, ours: Any, theirs: Any) -> str:
        if torch.Tag.nondeterministic_seeded in function.tags:
            return "random"
        pairs = [
            (_content(self._session, device), host.resolve_conj().resolve_neg())
            for device, host in zip(ours, theirs, strict=False)
            if host.layout == torch.strided
        ]
        return compared(name, before[0], pairs, in_double(function, *before))


def _content(session: Session, tensor: SimTensor) -> torch.Tensor:
    return session.download(tensor).torch().resolve_conj().resolve_neg()


def _named(schema: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    given = {a.name: value for a, value in zip(schema.arguments, args, strict=False)} | kwargs
    if any(a.name == "device" for a in schema.arguments):
        given["device"] = "mps"
    given.pop("pin_memory", None)
    return given


def _uploaded(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments with their tensors on the device; one tensor stays one."""
    known: dict[int, SimTensor] = {}

    def upload(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in known:
            scalar = value.dtype in (torch.float64, torch.complex128) and value.dim() == 0
            known[id(value)] = session.upload(from_torch(value, "cpu" if scalar else "mps"))
        return known[id(value)]

    return {name: tree_map(upload, value) for name, value in given.items()}


def _calls(session: Session, options: argparse.Namespace) -> Iterator[Row]:
    kind = getattr(torch, options.dtype)
    for info in entries(options.names):
        variant = f".{info.variant_test_name}" if info.variant_test_name else ""
        if kind in info.dtypes:
            rows = _sampled(session, info, kind, options.samples)
            yield from ({"info": info.name + variant, **row} for row in rows)


def _sampled(session: Session, info: Any, kind: torch.dtype, count: int) -> list[Row]:
    rows: list[Row] = []
    sweep = Sweep(session, rows.append)
    try:
        samples = list(islice(info.sample_inputs("cpu", kind, requires_grad=False), count))
    except Exception:
        return rows
    for sample in samples:
        sweep.begin()
        try:
            with torch.no_grad(), sweep:
                info.op(sample.input, *sample.args, **sample.kwargs)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            rows.append({"op": "", "outcome": "driver", "message": message[:200]})
    return rows


def _summary(rows: list[Row], seconds: float) -> None:
    values = Counter(row["value"].split("[")[0] for row in rows if "value" in row)
    print(f"{len(rows)} calls in {seconds:.0f} s:", dict(Counter(r["outcome"] for r in rows)))
    print("values:", dict(values), "calls with notes:", sum(bool(r.get("notes")) for r in rows))
    for row in rows:
        found = [f"finding: {text}" for text in row.get("findings", ())][:1]
        if row["outcome"] in ("unknown", "driver"):
            found.append(f"{row['outcome']}: {row['message'][:140]}")
        if row.get("value", "").startswith(("differs", "metadata")):
            found.append(row["value"])
        for text in found:
            print(f"  {row['info']:32} {row['op']:36} {text}")


def main() -> int:
    """Prints counts by outcome and every call that differs or is unknown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--torch", default="2.15.0")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--macos", default="26.2")
    parser.add_argument("--gpu", default="M2")
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    prepared = host.prepare(options.torch)
    cache = cache_folder().parent / "shaders"
    started = time.perf_counter()
    with host.open(
        prepared, options.macos, options.gpu, lambda region: Shaders(prepared, region, cache)
    ) as session:
        rows = list(_calls(session, options))
    _summary(rows, time.perf_counter() - started)
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
