"""Reads one wheel: what its library registers, checked against its own `native_functions.yaml`."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from opdb.build.call_graph import CertainCalls, PossibleCalls
from opdb.build.control_flow import Flow
from opdb.build.macho import Image
from opdb.build.python_kernels import FILES, KEY, python_kernels
from opdb.build.registrations import (
    Registration,
    catch_all,
    registrations,
    schemas,
    short_name,
)
from opdb.build.schema import Schema, parse
from opdb.native_functions import Declared, declared, load
from scanner.errors import DataError

__all__ = ["BACKENDS", "Facts", "derive", "differences"]

BACKENDS = ("MPS", "SparseMPS", "SparseCsrMPS")
_COMPOSITE = {
    "CompositeImplicitAutograd": "implicit",
    "CompositeExplicitAutograd": "explicit",
    "CompositeExplicitAutogradNonFunctional": "nonfunctional",
}
_PRECEDENCE = ("nonfunctional", "explicit", "implicit")
"""In which order the dispatcher looks for a kernel for all backends."""

_LIBRARY = "torch/lib/libtorch_cpu.dylib"
_YAML = "torchgen/packaged/ATen/native/native_functions.yaml"


class Facts(NamedTuple):
    """What one wheel says. Overloads by plain name."""

    registered: dict[tuple[str, str], str]
    """(overload, dispatch key of MPS) → kernel, fallback, raises, or decomposition (in Python)."""
    composite: dict[str, str]
    """Overload → implicit, explicit, nonfunctional, raises or none. The keys are all overloads."""
    calls: dict[str, frozenset[str]]
    """Overload → those that its kernel for all backends always calls, unless it is implicit."""
    paths: dict[tuple[str, str], str]
    """(overload, other one that its kernel for all backends calls) → always, or maybe: for some
    arguments."""
    cpu: frozenset[str]
    """Overloads with a CPU kernel of their own."""
    schemas: dict[str, Schema]
    tracker: str
    """Issue that the error message of a missing MPS kernel links."""
    yaml: dict[str, Declared]
    """What the YAML in the wheel declares; the facts above do not depend on it."""


def derive(wheel: Path) -> Facts:
    """All facts of one wheel. 5 to 10 s and 0.6 to 1.2 GB of memory.

    DataError when the wheel lacks a file or its code has a shape that is not understood.
    """
    try:
        with _members(wheel) as (library, yaml, python):
            image = Image(library)
            try:
                return _read(image, declared(load(yaml)), python)
            finally:
                image.close()
    except (KeyError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{wheel}: cannot be read: {error}",
            remedy="Delete a damaged wheel; for a new release, teach opdb.build its code's shape.",
        ) from error


@contextmanager
def _members(wheel: Path) -> Iterator[tuple[Path, Path, frozenset[str]]]:
    """Library and YAML of a wheel, unpacked for a while, and what its Python registers for MPS."""
    with TemporaryDirectory(prefix="opdb-") as folder, zipfile.ZipFile(wheel) as archive:
        library, yaml = (Path(archive.extract(name, folder)) for name in (_LIBRARY, _YAML))
        there = [name for name in FILES if name in archive.namelist()]
        registered = (python_kernels(archive.read(name).decode()) for name in there)
        yield library, yaml, frozenset().union(*registered)


def _read(image: Image, yaml: dict[str, Declared], python: frozenset[str]) -> Facts:
    if catch_all(image) != {"mps_fallback", "mps_error_fallback"}:
        raise ValueError(f"unknown catch-all for MPS: {catch_all(image)}")
    found = list(registrations(image, frozenset((*BACKENDS, *_COMPOSITE, "CPU"))))
    defined = {schema.name: schema for schema in map(parse, schemas(image))}
    for one in found:
        if one.name not in defined:
            raise ValueError(f"{one.name} is registered for {one.key} and not defined")
    flow = Flow(image)
    certain, chosen = CertainCalls(image, flow, defined), _chosen(found)
    kinds = {name: _kind(one, flow) for name, one in chosen.items()}
    followed = [one for one in chosen.values() if kinds[one.name] in ("explicit", "nonfunctional")]
    return Facts(
        registered={(o.name, o.key): _function(o, flow) for o in found if o.key in BACKENDS}
        | {(name, KEY): "decomposition" for name in python},
        composite=dict.fromkeys(defined, "none") | kinds,
        calls={one.name: certain.of(one.entry) - {one.name} for one in followed},
        paths=_paths(chosen.values(), certain, PossibleCalls(image, flow, defined)),
        cpu=frozenset(one.name for one in found if one.key == "CPU"),
        schemas=defined,
        tracker=_tracker(image),
        yaml=yaml,
    )


def _paths(
    chosen: Iterable[Registration], certain: CertainCalls, possible: PossibleCalls
) -> dict[tuple[str, str], str]:
    paths = {}
    for one in chosen:
        always = certain.of(one.entry)
        for called in (possible.of(one.entry) | always) - {one.name}:
            paths[one.name, called] = "always" if called in always else "maybe"
    return paths


def _chosen(found: list[Registration]) -> dict[str, Registration]:
    """Overload → the kernel for all backends that the dispatcher would take."""
    chosen: dict[str, Registration] = {}
    for kind in reversed(_PRECEDENCE):
        chosen |= {one.name: one for one in found if _COMPOSITE.get(one.key) == kind}
    return chosen


def _kind(one: Registration, flow: Flow) -> str:
    """Kind of a kernel for all backends; implicit ones never reach a device and are not read."""
    kind = _COMPOSITE[one.key]
    return kind if kind == "implicit" or flow.returns(one.entry) else "raises"


def _function(one: Registration, flow: Flow) -> str:
    """What is registered: kernel, fallback or raises."""
    name = short_name(one.function)
    if name == "mps_fallback":
        return "fallback"
    if name == "mps_error_fallback":
        return "raises"
    if not one.entry:
        raise ValueError(f"{one.name} is registered with the unknown boxed function {name}")
    return "kernel" if flow.returns(one.entry) else "raises"


def _tracker(image: Image) -> str:
    """The issue named in the message of `mps_error_fallback`."""
    found = image.strings(b"please comment on https://github.com/pytorch/pytorch/issues/")
    message = [text for text in found if text.startswith(("please", "phase of this feature"))]
    links = {match[0] for text in message if (match := re.search(r"https://\S+?\d+", text))}
    if len(links) != 1:
        raise ValueError(f"the message of a missing MPS kernel is not as expected: {message}")
    return links.pop()


def differences(facts: Facts) -> list[str]:
    """Where the YAML and the library disagree about the kernels for all backends, and about MPS."""
    yaml, found = facts.yaml, []
    for name in sorted(facts.composite.keys() | yaml.keys()):
        if name not in yaml or name not in facts.composite:
            found.append(f"{name}: only in the {'library' if name in facts.composite else 'YAML'}")
            continue
        kind, one = facts.composite[name], yaml[name]
        if kind not in (one.composite, "raises"):
            found.append(f"{name}: {kind} in the library, {one.composite} in the YAML")
        elif one.delegate and kind != "raises" and one.delegate not in facts.calls[name]:
            found.append(f"{name}: does not always call {one.delegate}, as the YAML has it")
        if ("MPS" in one.backends) != ((name, "MPS") in facts.registered):
            found.append(f"{name}: registered for MPS in one of YAML and library only")
    return found
