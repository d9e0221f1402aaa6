"""`python -m opdb.build torch-sim`: sweeps prepared releases and renders the two tables."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import platformdirs

from opdb import tables
from opdb.build import write
from opdb.build.execution.fold import fold
from opdb.build.execution.observation import Header, Observation, read
from opdb.build.releases import RELEASES
from scanner.errors import DataError, UsageError
from scanner.sim.assemble import simulator_digest
from scanner.sim.prepare.errors import PrepareError
from scanner.sim.prepare.release import find_prepared

__all__ = [
    "DTYPES",
    "SAMPLES",
    "Environment",
    "default_folder",
    "environments",
    "observed",
    "tables_of",
]

DTYPES = ("float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool", "complex64")
"""What MPS tensors can be, as far as models use it."""
SAMPLES = 3
_HOUR = 3600
_MACOS = ((3, "13.5"), (6, "14.5"), (9, "15.5"))
"""The macOS of a release's time: up to which minor version of torch 2, which."""
_NEWEST = "26.2"


class Environment(NamedTuple):
    """A release on a macOS."""

    release: str
    macos: str

    @property
    def name(self) -> str:
        """As the tables write it."""
        return f"{self.release}@{self.macos}"


def environments(releases: Sequence[str], macos: Sequence[str]) -> list[Environment]:
    """Where to sweep; without `releases` every prepared one, without `macos` the release's own."""
    chosen = releases or [release for release in RELEASES if _prepared(release)]
    if not chosen:
        raise UsageError(
            "no release is prepared for the simulator",
            remedy="Prepare one: `opscan sim prepare torch==2.15.0`.",
        )
    return [Environment(r, each) for r in chosen for each in macos or (_macos(r),)]


def observed(
    environment: Environment,
    folder: Path,
    say: Callable[[str], None],
    *,
    fresh: bool = False,
    as_is: bool = False,
) -> list[tuple[Header, list[Observation]]]:
    """The observations of every dtype: kept ones of the same simulator, or a sweep's.

    `fresh` sweeps in any case; `as_is` takes what is kept, whatever simulator it is of, and
    nothing else. Raises DataError when a sweep fails or nothing is kept.
    """
    home = folder / environment.name
    kept = {dtype: home / f"{dtype}.jsonl" for dtype in DTYPES}
    if not as_is:
        missing = [d for d, path in kept.items() if fresh or not _current(path)]
        if missing:
            say(f"sweeping {environment.name}: {', '.join(missing)}")
            _sweep(environment, missing, home)
    found = [read(path) for path in kept.values() if path.exists()]
    if not found:
        raise DataError(f"{home}: no sweep is kept there", remedy="Leave out --as-is to make one.")
    return found


def tables_of(
    folder: Path, seen: Iterable[tuple[Environment, list[tuple[Header, list[Observation]]]]]
) -> dict[str, str]:
    """File name → text: the given environments anew, the others as `folder` has them."""
    fresh = {environment: sweeps for environment, sweeps in seen if sweeps}
    known = _recorded(folder)
    lines = {**known, **{env: _provenance(env, sweeps) for env, sweeps in fresh.items()}}
    order = sorted(lines, key=_age)
    kept = write.read(folder / tables.SIMULATED.file, tables.SIMULATED, [e.name for e in known])
    names = {environment.name for environment in fresh}
    rows: write.Rows = {fact: rest for fact, each in kept.items() if (rest := each - names)}
    for environment, sweeps in fresh.items():
        for fact in fold(row for _, observations in sweeps for row in observations):
            rows.setdefault(fact, set()).add(environment.name)
    body = "".join("\t".join(lines[environment]) + "\n" for environment in order)
    return {
        tables.SIMULATIONS.file: tables.SIMULATIONS.header + body,
        tables.SIMULATED.file: write.render(tables.SIMULATED, rows, [e.name for e in order]),
    }


def default_folder() -> Path:
    """Where observations are kept."""
    return platformdirs.user_cache_path("opscan") / "observations"


def _prepared(release: str) -> bool:
    try:
        find_prepared(release, None)
    except PrepareError:
        return False
    return True


def _macos(release: str) -> str:
    major, minor = (int(part) for part in release.split(".")[:2])
    fitting = (macos for last, macos in _MACOS if (major, minor) < (2, last))
    return next(fitting, _NEWEST)


def _current(path: Path) -> bool:
    """Whether a kept sweep is of the present simulator."""
    return path.exists() and read(path)[0].simulator == simulator_digest()


def _sweep(environment: Environment, dtypes: Sequence[str], home: Path) -> None:
    """In a process of its own, which holds torch and the emulator."""
    module = "opdb.build.execution.worker"
    what = [*environment, ",".join(dtypes), str(SAMPLES), str(home)]
    try:
        done = subprocess.run(
            [sys.executable, "-m", module, *what],
            capture_output=True,
            text=True,
            timeout=_HOUR,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DataError(f"{environment.name}: the sweep does not end within {_HOUR} s") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
        raise DataError(f"{environment.name} cannot be swept: {said[0]}")


def _recorded(folder: Path) -> dict[Environment, tuple[str, ...]]:
    path = folder / tables.SIMULATIONS.file
    if not path.exists():
        return {}
    found = tables.lines(path, tables.SIMULATIONS)
    return {Environment(fields[0], fields[1]): tuple(fields) for _, fields in found}


def _age(environment: Environment) -> tuple[int, list[int]]:
    numbers = [int(part) for part in environment.macos.split(".")]
    return RELEASES.index(environment.release), numbers


def _provenance(
    environment: Environment, sweeps: list[tuple[Header, list[Observation]]]
) -> tuple[str, ...]:
    headers = [header for header, _ in sweeps]
    outcomes = Counter(row.outcome for _, rows in sweeps for row in rows)
    counts = f"calls={sum(outcomes.values())},unknown={outcomes['unknown']}"
    dtypes = f"dtypes={len(sweeps)}"
    return (
        *environment,
        _joined(header.gpu for header in headers),
        _joined(header.simulator for header in headers),
        _joined(f"torch {header.reference}" for header in headers),
        _joined(str(header.samples) for header in headers),
        f"{counts},{dtypes}",
    )


def _joined(values: Iterator[str]) -> str:
    """Each once, in order; one value as a rule."""
    return ",".join(dict.fromkeys(values))
