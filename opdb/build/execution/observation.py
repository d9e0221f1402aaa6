"""What was seen of one call, and the files that keep it: a header, then one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from scanner.errors import DataError

__all__ = ["Header", "Observation", "read", "write"]

SCHEMA = 1


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """Where the observations come from."""

    release: str
    macos: str
    gpu: str
    dtype: str
    """Of the samples; calls inside them may have others."""
    samples: int
    """How many of each OpInfo entry."""
    simulator: str
    """Digest of the simulator's sources."""
    wheel: str
    """SHA-256 of the release's wheel."""
    reference: str
    """Version of the torch on the CPU."""
    schema: int = SCHEMA


class Observation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of an overload in a simulated release that the CPU makes without an error."""

    entry: str
    """OpInfo's name, with the variant."""
    op: str
    dtype: str
    """Of the main operand (`opdb.operands`), or of the first result where there is no tensor."""
    outcome: str
    path: str
    layout: str = "sampled"
    empty: bool = False
    """No tensor of the call holds an element."""
    wide: bool = False
    """float64 or complex128 takes part, which no MPS tensor can have."""
    error: str = ""
    message: str = ""
    fallbacks: tuple[str, ...] = ()
    """Operators that the CPU computed, and LAPACK's routines."""
    commits: int = 0
    waits: int = 0
    launches: int = 0
    graphs: int = 0
    value: str = ""
    """How results compare with the CPU's (`values.compared`)."""
    notes: int = 0
    findings: tuple[str, ...] = ()


def write(path: Path, header: Header, observations: Iterable[Observation]) -> None:
    """Puts a whole file in place."""
    lines = [msgspec.json.encode(header), *map(msgspec.json.encode, observations)]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_bytes(b"\n".join(lines) + b"\n")
    part.replace(path)


def read(path: Path) -> tuple[Header, list[Observation]]:
    """Raises DataError for a file that is damaged or of another version."""
    try:
        first, *rest = path.read_bytes().splitlines()
        header = msgspec.json.decode(first, type=Header)
        if header.schema != SCHEMA:
            raise ValueError(f"schema {header.schema}, not {SCHEMA}")
        return header, [msgspec.json.decode(line, type=Observation) for line in rest]
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: cannot be read: {error}", remedy="Delete it; it is made again."
        ) from None
