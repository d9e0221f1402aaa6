"""The PyTorch releases with an arm64 macOS wheel, oldest first, and how to get and read one."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from opdb.build.macho import Image
from opdb.build.registrations import Registration, registrations, schemas, short_name
from opdb.build.schema import Schema, parse
from opdb.native_functions import Declared, declared, load

__all__ = ["BACKENDS", "RELEASES", "Facts", "derive"]

RELEASES = tuple(
    "1.12.1 1.13.0 1.13.1 2.0.0 2.0.1 2.1.0 2.1.1 2.1.2 2.2.0 2.2.1 2.2.2 2.3.0 2.3.1 2.4.0 2.4.1 2.5.0 "
    "2.5.1 2.6.0 2.7.0 2.7.1 2.8.0 2.9.0 2.9.1 2.10.0 2.11.0 2.12.0 2.12.1 2.13.0 2.14.0 2.14.1 2.15.0".split()
)
BACKENDS = ("MPS", "SparseMPS", "SparseCsrMPS")
_COMPOSITE = {
    "CompositeImplicitAutograd": "implicit",
    "CompositeExplicitAutograd": "explicit",
    "CompositeExplicitAutogradNonFunctional": "nonfunctional",
}
_LIBRARY = "torch/lib/libtorch_cpu.dylib"
_YAML = "torchgen/packaged/ATen/native/native_functions.yaml"


class Facts(NamedTuple):
    """What one wheel says."""

    registered: dict[tuple[str, str], str]
    """(overload, dispatch key of MPS) → kernel, fallback or raises."""
    composite: dict[str, str]
    """Overload → implicit, explicit, nonfunctional or none; the keys are all overloads that exist."""
    delegate: dict[str, str]
    """Overload → the one that its generated composite kernel calls."""
    cpu: frozenset[str]
    """Overloads with a CPU kernel of their own."""
    schemas: dict[str, Schema]
    tracker: str
    """Issue that the MPS error message asks the user to comment on."""
    differences: list[str]
    """Where the YAML and the library disagree."""


def derive(wheel: Path) -> Facts:
    """All facts of one wheel. 5 to 10 s, up to 1.5 GB."""
    with _members(wheel) as (library, yaml):
        image = Image(library)
        try:
            keys = frozenset((*BACKENDS, *_COMPOSITE, "CPU"))
            found = list(registrations(image, keys))
            defined = {schema.name: schema for schema in map(parse, schemas(image))}
            tracker = _tracker(image)
        finally:
            image.close()
        return _facts(found, defined, declared(load(yaml)), tracker)


@contextmanager
def _members(wheel: Path) -> Iterator[tuple[Path, Path]]:
    """The library and the YAML of a wheel, unpacked for a while."""
    with TemporaryDirectory(prefix="opdb-") as folder, zipfile.ZipFile(wheel) as archive:
        yield Path(archive.extract(_LIBRARY, folder)), Path(archive.extract(_YAML, folder))


def _facts(
    found: list[Registration],
    defined: dict[str, Schema],
    yaml: dict[str, Declared],
    tracker: str,
) -> Facts:
    composite: dict[str, Any] = dict.fromkeys(defined, "none")
    registered: dict[tuple[str, str], str] = {}
    for one in found:
        if one.name not in defined:
            raise ValueError(f"{one.name} is registered for {one.key} and not defined")
        if one.key in BACKENDS:
            registered[one.name, one.key] = _kind(one)
        elif one.key in _COMPOSITE and composite[one.name] != "nonfunctional":
            composite[one.name] = _COMPOSITE[one.key]
    return Facts(
        registered,
        composite,
        {name: fact.delegate for name, fact in yaml.items() if fact.delegate and name in defined},
        frozenset(one.name for one in found if one.key == "CPU"),
        defined,
        tracker,
        sorted(_differences(composite, yaml)),
    )


def _tracker(image: Image) -> str:
    """The issue named in the message of `mps_error_fallback`."""
    found = image.strings(b"please comment on https://github.com/pytorch/pytorch/issues/")
    message = [text for text in found if text.startswith(("please", "phase of this feature"))]
    links = {match[0] for text in message if (match := re.search(r"https://\S+?\d+", text))}
    if len(links) != 1:
        raise ValueError(f"the MPS error message is not as expected: {message}")
    return links.pop()


def _kind(one: Registration) -> str:
    name = short_name(one.function)
    known = {"mps_fallback": "fallback", "mps_error_fallback": "raises", "slow_conv2d_forward_mps": "raises"}
    if name in known:
        return known[name]
    if not one.entry:
        raise ValueError(f"{one.name} is registered with the unknown boxed function {name}")
    return "kernel"


def _differences(composite: dict[str, str], yaml: dict[str, Declared]) -> Iterator[str]:
    for name in composite.keys() - yaml.keys():
        yield f"{name} is not in the YAML"
    for name in yaml.keys() - composite.keys():
        yield f"{name} is not in the library"
    for name in yaml.keys() & composite.keys():
        if yaml[name].composite != composite[name]:
            yield f"{name}: {composite[name]} in the library, {yaml[name].composite} in the YAML"
