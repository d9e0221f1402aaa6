"""What PyTorch's own tests expect to fail on MPS, from the test support that wheels contain.

`torch/testing/_internal/common_mps.py` decorates OpInfo entries with expected failures and skips,
by macOS version. It is run with a stand-in for torch, once for each system, over entries of every
name that its text mentions; what it does to them are the facts. Nothing else of torch is needed.
What the entries' own definitions add to that is read by `opdb.build.upstream_entries`.
"""

from __future__ import annotations

import ast
import sys
import unittest
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

from opdb import tables
from opdb.build import download, write
from opdb.build.releases import RELEASES
from opdb.build.upstream_entries import DTYPES_FILE, FILES, Own, definitions, entries
from opdb.upstream import OWN

__all__ = ["FILE", "SYSTEMS", "Expectation", "derive", "expectations", "read_wheel"]

FILE = "torch/testing/_internal/common_mps.py"
SYSTEMS = ("14.0", "15.0", "26.0")
"""macOS versions that the file is asked about."""

Recorded = Mapping[str, tuple[str, str]]
"""Release → wheel name and hash."""

Names = Mapping[str, Any]
"""What the file defines."""

_ALL = "*"
_NAMES = {"double": "float64", "half": "float16", "long": "int64", "cdouble": "complex128"}
_NAMES |= {"int": "int32", "short": "int16", "float": "float32", "cfloat": "complex64"}


_MODIFIERS = {"forward": "mps_ops_modifier", "gradient": "mps_ops_grad_modifier"}


class Expectation(NamedTuple):
    """One entry that is expected not to pass."""

    key: str
    """OpInfo's name and variant, joined without a separator, as the file spells it; `*` for every
    entry that has no line of its own; `own:` and the same for what its definition says besides."""
    direction: str
    """`forward` or `gradient`."""
    kind: str
    """`xfail`: known to fail; `skip`: not run; `pass`: nothing of the kind, unlike others."""
    dtypes: str
    """Names joined by commas, `*` for all."""
    macos: str
    """Those of `SYSTEMS` on which it holds, joined by commas."""


def derive(releases: Iterable[str], cache: Path, recorded: Recorded) -> str:
    """Text of the data file, from the wheels that the other data were made from."""
    facts: write.Rows = {}
    for release in releases:
        path, _ = download.wheel(release, cache, recorded.get(release))
        for expectation in read_wheel(path):
            facts.setdefault(expectation, set()).add(release)
    return write.render(tables.UPSTREAM, facts, RELEASES)


class _Decorator(NamedTuple):
    """Stands in for `DecorateInfo`."""

    decorator: Any
    dtypes: tuple[str, ...] | None


class _Entry:
    """Stands in for an OpInfo."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.variant_test_name = ""
        self.decorators: tuple[_Decorator, ...] = ()


def read_wheel(path: Path) -> tuple[Expectation, ...]:
    """Expectations of a wheel's release, sorted; none when it has no such file."""
    with zipfile.ZipFile(path) as wheel:
        if FILE not in wheel.namelist():
            return ()
        found = expectations(wheel.read(FILE).decode())
        there = {name: wheel.read(name).decode() for name in _texts(wheel)}
    return tuple(sorted((*found, *_own(there))))


def _texts(wheel: zipfile.ZipFile) -> list[str]:
    return [name for name in (DTYPES_FILE, *FILES) if name in wheel.namelist()]


def _own(texts: Mapping[str, str]) -> Iterator[Expectation]:
    """What the definitions of entries say, by system."""
    systems: dict[Own, list[str]] = {}
    calls = [call for file in FILES for call in definitions(texts.get(file, ""))]
    for system in SYSTEMS if DTYPES_FILE in texts else ():
        names = _run(texts[DTYPES_FILE], float(system)) | {"MACOS_VERSION": float(system)}
        for fact in dict.fromkeys(entries(calls, names)):
            systems.setdefault(fact, []).append(system)
    for own, on in systems.items():
        yield Expectation(OWN + own.key, own.direction, own.kind, own.dtypes, ",".join(on))


def expectations(source: str) -> tuple[Expectation, ...]:
    """Expectations of the file's text, sorted.

    An entry that is treated as any other on every system has none of its own.
    """
    modules = {system: _run(source, float(system)) for system in SYSTEMS}
    others = _facts(modules, _ALL)
    found = [Expectation(_ALL, *fact) for fact in others]
    for name in _literals(source):
        facts = _facts(modules, name)
        if facts != others:
            passes = ("forward", "pass", _ALL, ",".join(SYSTEMS))
            found += [Expectation(name, *fact) for fact in facts or [passes]]
    return tuple(sorted(found))


def _facts(modules: Mapping[str, Names], name: str) -> list[tuple[str, str, str, str]]:
    """Direction, kind, dtypes and systems of everything that is added to an entry."""
    systems: dict[tuple[str, str, str], list[str]] = {}
    for system, module in modules.items():
        for fact in dict.fromkeys(_about(module, name)):
            systems.setdefault(fact, []).append(system)
    return [(*fact, ",".join(found)) for fact, found in systems.items()]


def _about(module: Names, name: str) -> Iterator[tuple[str, str, str]]:
    """Direction, kind and dtypes of everything that is added to an entry."""
    for direction, modifier in _MODIFIERS.items():
        yield from ((direction, *fact) for fact in _decorated(module[modifier], name))


def _decorated(modifier: Any, name: str) -> list[tuple[str, str]]:
    """Kind and dtypes of everything that a modifier adds to an entry."""
    entry = _Entry(name)
    modifier([entry])
    return [_fact(each) for each in entry.decorators if each.dtypes != ()]


def _fact(decorator: _Decorator) -> tuple[str, str]:
    kind = "xfail" if decorator.decorator is unittest.expectedFailure else "skip"
    return kind, _ALL if decorator.dtypes is None else ",".join(sorted(decorator.dtypes))


def _literals(source: str) -> list[str]:
    nodes = ast.walk(ast.parse(source))
    values = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return sorted(value for value in values if isinstance(value, str) and " " not in value)


class _Torch(ModuleType):
    """Answers every dtype with its name, and says that MPS is there."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in {"backends", "mps"}:
            return self
        if name == "dtype":
            return str
        if name in {"is_available", "is_macos13_or_newer", "is_macos_or_newer"}:
            return lambda *_version: True
        return _NAMES.get(name, name)


def _decorate_info(decorator: Any, *_: Any, dtypes: Any = None, **__: Any) -> _Decorator:
    class Info(_Decorator):
        device_type = None

    return Info(decorator, None if dtypes is None else tuple(dtypes))


def _run(source: str, macos: float) -> dict[str, Any]:
    """The file's names after running it as on a system."""
    stand_ins = {
        "torch": _Torch("torch"),
        "torch.testing._internal.common_utils": _module("u", MACOS_VERSION=macos),
        "torch.testing._internal.opinfo.core": _module(
            "c", DecorateInfo=_decorate_info, OpInfo=Any
        ),
    }
    parents = ("torch.testing", "torch.testing._internal", "torch.testing._internal.opinfo")
    stand_ins |= {name: _module(name, __path__=[]) for name in parents}
    names: dict[str, Any] = {"__package__": "torch.testing._internal", "__name__": "common_mps"}
    with patch.dict(sys.modules, stand_ins):
        exec(compile(source, FILE, "exec"), names)
    return names


def _module(name: str, **values: Any) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(values)
    return module
