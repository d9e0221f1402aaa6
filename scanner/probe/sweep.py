"""A device as a whole: PyTorch's own samples for every operator, through the probe."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from scanner.children import importable
from scanner.errors import UsageError
from scanner.probe.plan import config_key
from scanner.probe.protocol import Outcome
from scanner.records import OpCall

__all__ = ["Sample", "Swept", "op_infos", "summarize"]

_WORST_FIRST = (
    "crash",
    "wrong",
    "nan",
    "unsupported",
    "unknown",
    "fallback",
    "slow",
    "native",
    "composite",
    "skipped",
)


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration, and the OpInfo entry whose samples led to it."""

    name: str
    call: OpCall


@dataclass(frozen=True, kw_only=True)
class Swept:
    """What a sweep found."""

    by_status: Mapping[str, int]
    """Configurations, each once."""
    by_name: Mapping[str, str]
    """OpInfo entry → the worst status among its configurations, sorted by name."""
    missing: int
    """Configurations without an outcome."""


def op_infos(
    names: Sequence[str], dtypes: Sequence[str], samples: int, environ: Mapping[str, str]
) -> list[Sample]:
    """Configurations of the named OpInfo entries (all when none is named).

    Collected in a process of its own, since that imports torch. Raises `UsageError` when PyTorch
    has no such entry, or its test database cannot be imported.
    """
    command = [sys.executable, "-m", "scanner.probe.opinfo", "--samples", str(samples)]
    command += [flag for dtype in dtypes for flag in ("--dtype", dtype)]
    done = subprocess.run(
        [*command, "--", *names], capture_output=True, env=importable(environ), check=False
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(
            f"PyTorch's samples could not be collected: {said[-1] if said else 'no output'}",
            remedy="The names are PyTorch's own (add, nn.functional.conv2d); "
            "torch and the package expecttest must be installed.",
        )
    decoder = msgspec.json.Decoder(Sample)
    return [decoder.decode(line) for line in done.stdout.splitlines()]


def summarize(samples: Sequence[Sample], outcomes: Mapping[str, Outcome]) -> Swept:
    """Counts; an entry without an outcome for one of its configurations is `unknown`."""
    missing = {key for sample in samples if (key := config_key(sample.call)) not in outcomes}
    statuses: defaultdict[str, list[str]] = defaultdict(list)
    for sample in samples:
        outcome = outcomes.get(config_key(sample.call))
        statuses[sample.name].append(outcome.status if outcome else "unknown")
    return Swept(
        by_status=dict(_ranked(Counter(outcome.status for outcome in outcomes.values()))),
        by_name={name: min(found, key=_rank) for name, found in sorted(statuses.items())},
        missing=len(missing),
    )


def _ranked(counts: Counter[str]) -> Iterator[tuple[str, int]]:
    return iter(sorted(counts.items(), key=lambda pair: _rank(pair[0])))


def _rank(status: str) -> int:
    return _WORST_FIRST.index(status)
