"""Facts about an installed torch that the data files do not know: a nightly, a newer release.

Read from the YAML of its code generator, without importing torch. That shows every generated
registration; the few written by hand are taken from the newest known release. On a Mac the
dispatcher of the installed torch is asked as well, in a process of its own.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from opdb import database, store
from opdb.facts import Basis, OpFact, judge, qualified
from opdb.native_functions import Declared, declared, load
from scanner.errors import UsageError

__all__ = ["fact", "names", "registered", "version", "yaml_path"]

_YAML = Path("packaged", "ATen", "native", "native_functions.yaml")
_ASK = """
import torch
for op in torch._C._dispatch_get_registrations_for_dispatch_key("MPS"):
    for line in torch._C._dispatch_dump(op).splitlines():
        if line.startswith("MPS: "):
            print(op, "kernel" if "unboxed" in line else "fallback")
"""
"""A kernel can be called boxed and unboxed; what is registered boxed only is the CPU fallback."""


def version() -> str | None:
    """Version of the installed torch, read from its `version.py`."""
    folder = _folder("torch")
    file = folder / "version.py" if folder else None
    if file is None or not file.is_file():
        return None
    match = re.search(r"^__version__ = ['\"](.+)['\"]", file.read_text("utf-8"), re.MULTILINE)
    return match[1] if match else None


def yaml_path() -> Path | None:
    """The installed torch's `native_functions.yaml`."""
    folder = _folder("torchgen")
    return folder / _YAML if folder and (folder / _YAML).is_file() else None


def _folder(package: str) -> Path | None:
    spec = find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


def fact(name: str, release: str, key: str) -> OpFact:
    """Everything that can be inferred about an overload (plain name) in the installed version."""
    known = _basis(name, release, key)
    status, reason = judge(name, key, lambda other: _basis(other, release, key))
    path = _declared(release)[0]
    if name in database.by_hand(key) and known.registered:
        reason += f"; taken from torch {store.default.releases[-1]}, because no YAML shows it"
    return OpFact(
        op=qualified(name),
        version=release,
        status=status,
        evidence="inferred" if known.exists else None,
        reason=f"{reason} (read from {path.name} of the installed torch)",
        exists=known.exists,
        registered=known.registered or None,  # type: ignore[arg-type]
        key=key,
        source=_source(path, key),
        composite=None if known.composite == "none" else known.composite,  # type: ignore[arg-type]
        calls=tuple(map(qualified, known.calls)),
        cpu=known.cpu,
    )


def _source(path: Path, key: str) -> str:
    asked = key == "MPS" and _dispatcher() is not None
    return f"{path} and the dispatcher of the installed torch" if asked else str(path)


def names(release: str) -> tuple[str, ...]:
    """All overloads of the installed version, plain names, sorted."""
    return tuple(sorted(_declared(release)[1]))


def registered(release: str, key: str) -> tuple[str, ...]:
    """Overloads registered for a dispatch key in the installed version, plain names, sorted."""
    return tuple(name for name in names(release) if _basis(name, release, key).registered)


def _basis(name: str, release: str, key: str) -> Basis:
    one = _declared(release)[1].get(name)
    if one is None:
        return Basis()
    calls = (one.delegate,) if one.delegate else ()
    sparse = not one.backends.isdisjoint({"SparseMPS", "SparseCsrMPS"})
    return Basis(True, _registered(one, key), one.composite, calls, "CPU" in one.backends, sparse)


def _registered(one: Declared, key: str) -> str:
    by_hand = database.by_hand(key).get(one.name, "")
    dispatcher = _dispatcher() if key == "MPS" else None
    if dispatcher is None:
        return "kernel" if key in one.backends else by_hand
    function = dispatcher.get(one.name, "")
    return "raises" if function == "kernel" and by_hand == "raises" else function


@cache
def _declared(release: str) -> tuple[Path, dict[str, Declared]]:
    path = yaml_path()
    if path is None or version() != release:
        raise UsageError(
            f"torch {release} is not known to opdb, and the installed torch is {version()}",
            remedy="Name a known release, or run opscan where that version is installed.",
        )
    return path, declared(load(path))


@cache
def _dispatcher() -> dict[str, str] | None:
    """Overload → kernel or fallback, as the installed torch registers it; None without MPS."""
    if platform.system() != "Darwin":
        return None
    done = subprocess.run(
        [sys.executable, "-c", _ASK], capture_output=True, text=True, check=False, timeout=120
    )
    pairs = (line.rsplit(" ", 1) for line in done.stdout.splitlines() if " " in line)
    return {op.removeprefix("aten::"): kind for op, kind in pairs} or None
