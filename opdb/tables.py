"""The data files: tab-separated text, one fact a line, sorted, over ordered releases.

The first line names the table and its schema number, the second the columns. `releases.tsv` has a
release a line, `simulations.tsv` a release on a macOS; in the other tables the last column is a set
of these (`opdb.intervals`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scanner.errors import DataError

__all__ = [
    "API",
    "EXECUTION",
    "GROUPS",
    "MPS",
    "OPINFO",
    "OPINFO_TORCH",
    "OPS",
    "PATHS",
    "RELEASES",
    "SCHEMA",
    "SIMULATED",
    "SIMULATIONS",
    "TABLES",
    "UPSTREAM",
    "Table",
    "corrupt",
    "lines",
    "text",
]

SCHEMA = 1
"""Of the files that this version writes, and the newest that it reads."""

_REMEDY = "Reinstall opscan-metal, or rebuild the data with `python -m opdb.build torch`."


class Table(NamedTuple):
    """Name and columns of one file."""

    name: str
    columns: tuple[str, ...]
    key: int
    """How many leading columns identify a fact within one release."""

    @property
    def file(self) -> str:
        """File name in the data folder."""
        return f"{self.name}.tsv"

    @property
    def header(self) -> str:
        """The first two lines."""
        return f"#opdb.torch.{self.name}\tschema={SCHEMA}\n" + "\t".join(self.columns) + "\n"


RELEASES = Table("releases", ("release", "wheel", "sha256", "counts", "tracker"), 1)
"""`counts` is `MPS=930,SparseMPS=161,SparseCsrMPS=13,MPS.python=0,ops=3120`; `tracker` is the
issue that the error message of a missing MPS kernel links."""

MPS = Table("mps", ("op", "key", "function", "releases"), 2)
"""What is registered for MPS: `function` is `kernel`, `fallback`, `raises`, or, under the key
`MPS.python`, `decomposition`: torch replaces the library's kernel by Python when it is imported."""

OPS = Table("ops", ("op", "composite", "calls", "cpu", "releases"), 1)
"""Every overload. `composite` is the kernel for all backends: `implicit`, `explicit`,
`nonfunctional`, `raises` (it only raises an error) or `none`; `calls` are the overloads that it
calls on every path, `-` for none; `cpu` tells that the CPU has a kernel of its own."""

GROUPS = Table("groups", ("op", "variant", "group", "view", "releases"), 1)
"""Which variant of which operator: `group` is the functional overload if there is one."""

PATHS = Table("paths", ("op", "call", "when", "releases"), 2)
"""Calls of kernels for all backends that lead to an op without an MPS kernel: `op` calls `call`
`always`, or `maybe`: for some arguments."""

UPSTREAM = Table("upstream", ("key", "direction", "kind", "dtypes", "macos", "releases"), 5)
"""What PyTorch's own tests expect of an OpInfo entry: `opdb.build.upstream.Expectation`."""

OPINFO = Table(
    "opinfo", ("name", "variant", "direction", "dtypes", "ops", "issues", "wide", "releases"), 4
)
"""What an OpInfo entry reaches: `opdb.build.opinfo.Reached`."""
API = Table(
    "api",
    ("name", "always", "one_of", "source", "unsupported", "fallback", "releases"),
    1,
)
"""What a call reaches by its name (`opdb.build.api.Reach`), and the releases in which that raises
on MPS, or runs on the CPU. These follow from the other tables; they are here so that source code
can be judged in no time."""
OPINFO_TORCH = "2.13.0"
"""The release whose samples and kernels it was recorded with."""

SIMULATIONS = Table(
    "simulations", ("release", "macos", "gpu", "simulator", "reference", "samples", "counts"), 2
)
"""Environments that were simulated: `simulator` is the digest of its sources, `reference` the torch
on the CPU, `samples` how many of each OpInfo entry, `counts` is `calls=9000,unknown=3`."""

SIMULATED = Table(
    "simulated",
    ("op", "dtype", "layout", "outcome", "calls", "waits", "launches", "detail", "environments"),
    3,
)
"""What calls did there (`opdb.simulated.Simulated`). `environments` are ranges over the lines of
`simulations.tsv`, as `2.9.1@26.2..`; what lies between two of them was not simulated."""

EXECUTION = (SIMULATIONS, SIMULATED)
"""Tables that no wheel's registrations are read for."""

TABLES = (RELEASES, MPS, OPS, GROUPS, PATHS)


def corrupt(path: Path, line: int, what: str) -> DataError:
    """The error for a line that cannot be used; `line` is 1-based."""
    return DataError(f"{path}:{line}: {what}", remedy=_REMEDY)


def text(path: Path, table: Table) -> str:
    """A file's text, its header checked. DataError when unreadable, too new or not this table."""
    try:
        content = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}", remedy=_REMEDY) from None
    if content.startswith(table.header):
        return content
    schema = content.partition("\n")[0].partition("\tschema=")[2]
    if schema.isdecimal() and int(schema) > SCHEMA:
        raise DataError(
            f"{path}:1: schema {schema} is newer than this opscan reads ({SCHEMA})",
            remedy="Upgrade: pip install --upgrade opscan-metal",
        )
    raise corrupt(path, 1, f"the header of table {table.name} is missing or damaged")


def lines(path: Path, table: Table) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every fact. DataError on a line with another number of columns."""
    content = text(path, table)
    for number, line in enumerate(content[len(table.header) :].splitlines(), start=3):
        fields = line.split("\t")
        if len(fields) != len(table.columns) or not all(fields):
            raise corrupt(path, number, f"expected {len(table.columns)} columns: {line!r}")
        yield number, fields
