"""From what the user typed to the files and modules that are meant; torch is not needed."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from scanner.errors import LocateError, SourceError, UsageError
from scanner.locate.interface import Source
from scanner.locate.search import model_files

__all__ = ["display_path", "resolve"]

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_FORMS = "give file.py, file.py:name, package.module:name or a directory"
_KINDS = {
    ".ipynb": "notebooks are not read yet; export it with `jupyter nbconvert --to script`",
    ".pt": "saved weights do not say how the model computes; name the Python file that builds it",
    ".pth": "saved weights do not say how the model computes; name the Python file that builds it",
    ".ckpt": "saved weights do not say how the model computes; name the Python file that builds it",
    ".safetensors": "saved weights do not say how the model computes; name the Python file that "
    "builds it",
    ".pyc": "name the source file instead",
    ".json": "a saved report is shown by `opscan render`, and judged again by `opscan judge`",
}


def resolve(argument: str, cwd: Path) -> list[Source]:
    """The sources that one MODEL argument means, in a stable order.

    Raises `UsageError` when the argument has no valid form, `LocateError` when it names a missing
    file, a file that is no Python, or a directory without models.
    """
    if not argument.strip():
        raise UsageError("an empty MODEL argument", remedy=_FORMS)
    whole = cwd / argument
    if whole.exists():
        return _existing(argument, whole, None, cwd)
    target, name = _split(argument)
    path = cwd / target
    if path.exists():
        return _existing(argument, path, name, cwd)
    if _looks_like_path(target):
        raise _missing(target, path, cwd)
    if _MODULE.fullmatch(target):
        return [Source(argument=argument, module=target, name=name)]
    raise UsageError(f"{argument!r} is neither a path nor a module name", remedy=_FORMS)


def display_path(path: Path, cwd: Path) -> str:
    """The path relative to the working directory where it is below it, with `/` separators."""
    try:
        return path.relative_to(cwd).as_posix()
    except ValueError:
        return path.as_posix()


def _split(argument: str) -> tuple[str, str | None]:
    """Target and name; the colon of a Windows drive separates nothing."""
    head, colon, tail = argument.rpartition(":")
    is_drive = len(head) == 1 and head.isalpha() and tail[:1] in ("\\", "/")
    if not colon or is_drive:
        return argument, None
    name = tail.removesuffix("()")
    if not head or not _MODULE.fullmatch(name):
        raise UsageError(
            f"{argument!r}: what follows the colon must be the name of a class, function or "
            f"object, not {tail!r}",
            remedy=_FORMS,
        )
    return head, name


def _looks_like_path(target: str) -> bool:
    suffix = Path(target).suffix
    return "/" in target or "\\" in target or suffix == ".py" or suffix in _KINDS


def _existing(argument: str, path: Path, name: str | None, cwd: Path) -> list[Source]:
    path = Path(os.path.abspath(path))  # noqa: PTH100 - symbolic links keep the user's names
    if path.is_dir():
        return _directory(argument, path, name, cwd)
    if not path.is_file():
        raise SourceError(f"{argument}: neither a file nor a directory", remedy=_FORMS)
    if path.suffix != ".py":
        raise SourceError(
            f"{argument}: not a Python file", remedy=_KINDS.get(path.suffix.lower(), _FORMS)
        )
    return [Source(argument=argument, path=path, name=name)]


def _directory(argument: str, path: Path, name: str | None, cwd: Path) -> list[Source]:
    if name is not None:
        raise UsageError(
            f"{argument!r}: a name can follow a file or a module, not a directory",
            remedy=f"name the file that defines {name}",
        )
    files = model_files(path)
    if not files:
        raise SourceError(
            f"{argument}: no Python file below this directory defines a model",
            remedy="looked for files that mention torch and define an nn.Module subclass, a "
            "factory such as build_model() or opscan_model(); hidden directories, virtual "
            "environments, build output and tests are skipped: name such a file itself",
        )
    return [
        Source(argument=display_path(file.path, cwd), path=file.path, notes=file.notes)
        for file in files
    ]


def _missing(target: str, path: Path, cwd: Path) -> LocateError:
    similar: list[str] = []
    if path.parent.is_dir():
        names = [entry.name for entry in path.parent.iterdir() if entry.suffix == ".py"]
        similar = difflib.get_close_matches(path.name, sorted(names), n=3)
    if similar:
        paths = [display_path(path.parent / name, cwd) for name in similar]
        return SourceError(f"{target}: no such file", remedy=f"did you mean {' or '.join(paths)}?")
    return SourceError(
        f"{target}: no such file", remedy="check the path; it is relative to the current directory"
    )
