"""The model files of a directory, told from their syntax trees without running any."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scanner.locate.reading.outline import HOOK, Outline, outline
from scanner.locate.reading.trees import read_source

__all__ = ["ModelFile", "model_files"]

_SKIPPED_DIRS = frozenset(
    [
        "build",
        "dist",
        "site-packages",
        "dist-packages",
        "node_modules",
        "__pycache__",
        "venv",
        "env",
        "virtualenv",
        "test",
        "tests",
        "testing",
    ]
)
_SKIPPED_FILES = frozenset({"conftest.py", "setup.py", "noxfile.py"})


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """A file worth loading."""

    path: Path
    notes: tuple[str, ...] = ()
    """Other files that are left out because this one uses their classes."""


@dataclass(frozen=True, kw_only=True)
class _Read:
    path: Path
    tree: ast.Module | None
    """None when the file is no valid Python: loading it will say why."""
    facts: Outline | None


def model_files(root: Path) -> list[ModelFile]:
    """Files below `root` that define a model, in path order.

    A file whose module classes are all parts of models in other files is left out, and the file
    that uses them says so.
    """
    reads = [read for path in _python_files(root) if (read := _read(path)) is not None]
    known = _known_modules(reads)
    facts = {read.path: None if read.tree is None else outline(read.tree, known) for read in reads}
    offering = {path: fact for path, fact in facts.items() if fact is None or fact.offers_model}
    users = _users(offering)
    return [
        ModelFile(path=path, notes=_left_out(path, users, root))
        for path in offering
        if users[path] is None
    ]


def _python_files(root: Path) -> Iterator[Path]:
    for directory, names, files in os.walk(root):
        here = Path(directory)
        names[:] = sorted(name for name in names if _enters(here / name))
        for file in sorted(files):
            if file.endswith(".py") and not _is_skipped_file(file):
                yield here / file


def _enters(directory: Path) -> bool:
    name = directory.name
    if name.startswith(".") or name in _SKIPPED_DIRS or name.endswith(".egg-info"):
        return False
    return not (directory / "pyvenv.cfg").exists()


def _is_skipped_file(name: str) -> bool:
    return name in _SKIPPED_FILES or name.startswith((".", "test_")) or name.endswith("_test.py")


def _read(path: Path) -> _Read | None:
    """The file if it mentions torch or the hook; None otherwise, and when it cannot be read."""
    try:
        text = read_source(path)
    except (OSError, UnicodeDecodeError, SyntaxError):
        return None
    if "torch" not in text and HOOK not in text:
        return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        speaks = "Module" in text or HOOK in text
        return _Read(path=path, tree=None, facts=None) if speaks else None
    return _Read(path=path, tree=tree, facts=outline(tree))


def _known_modules(reads: list[_Read]) -> frozenset[str]:
    """Module classes of all files, those included whose base another file defines."""
    known: frozenset[str] = frozenset()
    while True:
        found = frozenset(
            fact.name
            for read in reads
            if read.tree is not None
            for fact in outline(read.tree, known).modules
        )
        if found == known:
            return known
        known = found


def _users(offering: dict[Path, Outline | None]) -> dict[Path, Path | None]:
    """For each file, another model file whose models use all of its module classes, if any."""
    users: dict[Path, Path | None] = {}
    for path, fact in offering.items():
        users[path] = None
        if fact is None or fact.has_hook or fact.factories or fact.models:
            continue
        tops = {module.name for module in fact.modules} - _internal(fact)
        used_by = {
            other: used
            for other, theirs in offering.items()
            if other != path
            and theirs is not None
            and _final(other, users) != path
            and (used := _imported(theirs, path.stem, tops))
        }
        if used_by and set().union(*used_by.values()) == tops:
            users[path] = next(iter(used_by))
    return users


def _imported(fact: Outline, stem: str, names: set[str]) -> set[str]:
    """Which of a file's classes another file's models and factories use."""
    uses = [user.uses for user in fact.modules] + [user.uses for user in fact.factories]
    chains = frozenset[str]().union(*uses)
    return {
        chain.rpartition(".")[2]
        for chain in chains
        if chain.rpartition(".")[2] in names and stem in chain.split(".")[:-1]
    }


def _internal(fact: Outline) -> set[str]:
    """Classes that are parts of others in their own file."""
    names = {module.name for module in fact.modules}
    used = {name for module in fact.modules for name in names if name in module.uses}
    return used if used != names else set()


def _left_out(path: Path, users: dict[Path, Path | None], root: Path) -> tuple[str, ...]:
    return tuple(
        f"{part.relative_to(root).as_posix()} is not scanned on its own: "
        f"its classes are parts of {path.relative_to(root).as_posix()}"
        for part, user in users.items()
        if user is not None and _final(user, users) == path
    )


def _final(path: Path, users: dict[Path, Path | None]) -> Path:
    """Follows parts of parts to the file that is scanned."""
    seen = {path}
    while (following := users.get(path)) is not None and following not in seen:
        path = following
        seen.add(path)
    return path
