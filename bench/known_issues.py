"""Executes the configurations of known issues in simulated releases and holds ranges against it.

    python bench/known_issues.py [--all] [--only ID,ID] [--releases 2.8.0,2.9.1] [--keep FILE]

Every prepared release (`opscan sim prepare torch==V`) runs the first of an entry's `hits` and of
its `misses`, under every macOS of `SYSTEMS` that it takes. A line is an entry and a system, with
what became of the first hit in each release: `layout` where only strides differ. `!` marks what
contradicts opscan's verdict, whichever entry or fact made it, and `~` a release in which the first
of the misses contradicts it. Entries whose ranges are verified are left out
without `--all`, and those that depend on values (`unseen`) always: `tests/sim/known_bugs.py` gives
these their values. So are configurations whose tensors, results included, are too large for the
emulator.

FILE keeps what was seen, a line of JSON each; a later run with the same file goes on from there.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import NamedTuple

import msgspec
import torch
from packaging.version import Version
from torch.utils._pytree import tree_leaves

from opdb import query
from opdb.issues.book import default
from opdb.issues.calls import read_call
from opdb.issues.records import Issue
from scanner.backends.sim_spec import sim_spec
from scanner.judge.known import decide, issues_of
from scanner.probe.limits import Launch, Limits
from scanner.probe.plan import config_key
from scanner.probe.rebuild import Unbuildable, bind, dtype_of
from scanner.probe.schema import schema_of
from scanner.probe.supervisor import DeviceError, probe
from scanner.records import OpCall, Target, TensorSpec
from scanner.sim.prepare.release import survey

SYSTEMS = ("13.5", "14.5", "15.5")
"""Where the behaviour of the host code changes: 14 and 15 have branches of their own."""
LARGEST = 1 << 22
"""Elements of all tensors of a configuration together; the emulator would take too long."""
RUNS = {"native", "composite"}
AGREES = {*RUNS, "layout", "unknown"}


class Seen(NamedTuple):
    """What became of a configuration."""

    key: str
    release: str
    macos: str
    status: str
    reason: str


class Case(NamedTuple):
    """An entry with the configurations of it that are run."""

    issue: Issue
    hit: OpCall
    miss: OpCall | None


def main() -> None:
    """Runs what is not kept yet, then prints the table."""
    options = _options()
    only = set(options.only.split(",")) if options.only else None
    cases = [case for case in _cases(every=options.all or bool(only)) if _wanted(case, only)]
    known = _read(options.keep)
    for release in _releases(options.releases):
        for macos in _systems(release):
            target = Target(framework="torch", version=release, macos=macos)
            known += _run(cases, target, known, options.keep)
    for line in _table(cases, known):
        print(line)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--releases", default="")
    parser.add_argument("--keep", type=Path)
    return parser.parse_args()


def _wanted(case: Case, only: set[str] | None) -> bool:
    return only is None or case.issue.id in only


def _cases(*, every: bool) -> Iterator[Case]:
    for issue in (entry.issue for entry in default.entries):
        if issue.unseen or (issue.confidence == "verified" and not every):
            continue
        hit = read_call(issue.hits[0])
        miss = read_call(issue.misses[0]) if issue.misses else None
        if _elements(hit) <= LARGEST:
            yield Case(issue, hit, miss if miss and _elements(miss) <= LARGEST else None)


def _elements(call: OpCall) -> int:
    """Of the operands and of the results, which a configuration need not spell out."""
    return sum(_reach(spec) for spec in call.inputs) + _results(call)


def _reach(spec: TensorSpec) -> int:
    """Elements up to the last one of a tensor, gaps between strides included."""
    steps = zip(spec.shape, spec.stride, strict=True)
    return 1 + sum((size - 1) * step for size, step in steps) if prod(spec.shape) else 0


def _results(call: OpCall) -> int:
    """As the op itself makes them on the meta device, or as the configuration says."""
    try:
        schema = schema_of(call.op)
        tensors = [_on_meta(spec) for spec in call.inputs]
        bound = bind(schema, call, tensors, "meta")
        made = tree_leaves(schema.func(*bound.args, **bound.kwargs))
    except (RuntimeError, LookupError, Unbuildable):  # no kernel for meta tensors, or refused
        return sum(prod(spec.shape) for spec in call.outputs)
    return sum(item.numel() for item in made if isinstance(item, torch.Tensor))


def _on_meta(spec: TensorSpec) -> torch.Tensor:
    return torch.empty_strided(spec.shape, spec.stride, dtype=dtype_of(spec.dtype), device="meta")


def _releases(text: str) -> list[str]:
    usable = {found.release for found in survey() if found.state == "usable"}
    wanted = usable & set(text.split(",")) if text else usable
    return sorted(wanted, key=Version)


def _systems(release: str) -> tuple[str, ...]:
    """macOS 13 is beneath what releases from 2.9 on take."""
    return SYSTEMS if Version(release) < Version("2.9") else SYSTEMS[1:]


def _run(cases: list[Case], target: Target, known: list[Seen], keep: Path | None) -> list[Seen]:
    place = (target.version, target.macos)
    done = {seen.key for seen in known if (seen.release, seen.macos) == place}
    calls = [call for case in cases for call in (case.hit, case.miss) if call]
    calls = [call for call in calls if config_key(call) not in done]
    if not calls:
        return []
    launch = Launch(environ=dict(os.environ))
    try:
        outcomes = {
            outcome.key: outcome
            for outcome in probe(calls, sim_spec(target), {}, launch=launch, limits=Limits())
        }
    except DeviceError as error:
        print(f"{target.id}: {error}", flush=True)
        return []
    found = [
        Seen(key, target.version, target.macos or "", outcome.status, outcome.reason)
        for key, outcome in outcomes.items()
    ]
    if keep is not None:
        with keep.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(seen) + "\n" for seen in found)
    return found


def _read(keep: Path | None) -> list[Seen]:
    if keep is None or not keep.exists():
        return []
    return [msgspec.json.decode(line, type=Seen) for line in keep.read_bytes().splitlines()]


def _table(cases: list[Case], known: list[Seen]) -> Iterator[str]:
    index = {(seen.key, seen.release, seen.macos): seen for seen in known}
    releases = sorted({seen.release for seen in known}, key=Version)
    for case in cases:
        yield f"{case.issue.id} [{case.issue.confidence}] {' '.join(case.issue.torch)}"
        for macos in SYSTEMS:
            cells = [_cell(case, release, macos, index) for release in releases]
            if any(cells):
                yield f"    {macos}: {' '.join(cell for cell in cells if cell)}"


def _cell(case: Case, release: str, macos: str, index: dict[tuple[str, str, str], Seen]) -> str:
    """The release, what was seen, and marks."""
    seen = index.get((config_key(case.hit), release, macos))
    if seen is None:
        return ""
    target = Target(framework="torch", version=release, macos=macos)
    mark = "!" if _contradicts(case.hit, seen, target) else ""
    miss = index.get((config_key(case.miss), release, macos)) if case.miss else None
    spared = "~" if miss and case.miss and _contradicts(case.miss, miss, target) else ""
    return f"{release}={_shown(seen)}{mark}{spared}"


def _contradicts(call: OpCall, seen: Seen, target: Target) -> bool:
    """Whether opscan says it runs and it does not, or the reverse."""
    if seen.status == "unknown":
        return False
    fact = query.lookup(call.op, target.version)
    issue = decide(issues_of(call, target, query))
    refused = fact.status not in RUNS or issue is not None
    return (_shown(seen) not in AGREES) != refused


def _shown(seen: Seen) -> str:
    """The status; a result whose strides alone differ has the right values."""
    parts = seen.reason.split("; ")
    only = all(part.startswith("stride (") for part in parts)
    return "layout" if seen.status == "wrong" and only else seen.status


if __name__ == "__main__":
    main()
