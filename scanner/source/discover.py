"""The Python files that the user means, in a stable order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from scanner.errors import SourceError

__all__ = ["EXCLUDED", "STDIN", "SourceFile", "shown", "shown_roots", "source_files"]

STDIN = "-"
EXCLUDED = frozenset(
    [
        *("__pycache__", "__pypackages__", "build", "dist", "node_modules", "site-packages"),
        *("dist-packages", "venv", "env", "virtualenv", "buck-out", "_build"),
    ]
)
"""Directories that are not entered unless they are named; nor are those that begin with a dot,
or are virtual environments."""


class SourceFile(NamedTuple):
    """One file to read."""

    path: str
    """As it can be opened; `-` for standard input."""
    name: str
    """As it is shown: relative to the working directory where it is below it, `/` between."""
    asked: bool
    """Named by the user, rather than found in a directory."""


def source_files(arguments: Iterable[str], cwd: str) -> list[SourceFile]:
    """Files in order of arguments, then of names; each of them once.

    A file is taken whatever its name is; in directories only `*.py` counts. Links to
    directories are not followed, unless they are named. Raises `SourceError` for what is missing.
    """
    found: dict[str, SourceFile] = {}
    for argument in arguments:
        if not argument:  # an unset variable in a script must not mean everything
            raise SourceError("an empty path", remedy="name a file, a directory or -")
        path = os.path.normpath(os.path.join(cwd, argument))  # noqa: PTH118 - hot, and lexical
        if argument == STDIN:
            found.setdefault(STDIN, SourceFile(STDIN, "<stdin>", True))
        elif os.path.isdir(path):  # noqa: PTH112
            for file in _below(path):
                found.setdefault(file, SourceFile(file, shown(file, cwd), False))
        elif os.path.exists(path):  # noqa: PTH110
            found[path] = SourceFile(path, shown(path, cwd), True)
        else:
            raise SourceError(
                f"{argument}: no such file or directory",
                remedy="check the path; it is relative to the current directory",
            )
    return list(found.values())


def shown_roots(arguments: Iterable[str], cwd: str) -> tuple[str, ...]:
    """What the arguments name, as a report shows files; `.` for the working directory."""
    paths = (os.path.normpath(os.path.join(cwd, argument)) for argument in arguments)  # noqa: PTH118
    return tuple(dict.fromkeys("." if path == cwd else shown(path, cwd) for path in paths))


def _below(directory: str) -> Iterator[str]:
    """Files of a directory before those of its directories, each in order of names."""
    try:
        with os.scandir(directory) as entries:
            every = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        yield directory  # whoever reads it says why it cannot be read
        return
    folders = []
    for entry in every:
        if entry.is_dir(follow_symlinks=False):
            if _enters(entry):
                folders.append(entry.path)
        elif entry.name.endswith(".py") and _is_file(entry):
            yield entry.path
    for folder in folders:
        yield from _below(folder)


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Links that lead nowhere, or to themselves, are no files."""
    try:
        return entry.is_file()
    except OSError:
        return False


def _enters(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name in EXCLUDED:
        return False
    return not os.path.exists(f"{entry.path}/pyvenv.cfg")  # noqa: PTH110


def shown(path: str, cwd: str) -> str:
    """A path relative to the working directory where it is below it, with `/` between."""
    inside = path.startswith(cwd.rstrip(os.sep) + os.sep)
    rest = path[len(cwd.rstrip(os.sep)) + 1 :] if inside else path
    return rest.replace(os.sep, "/")
