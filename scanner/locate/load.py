"""Runs the user's file as a module, in the capture child."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from scanner.errors import LocateError, SourceError
from scanner.locate.blame import describe, needs_values, user_frame
from scanner.locate.interface import Source
from scanner.locate.reading.trees import read_source
from scanner.locate.resolve import display_path

__all__ = ["Loaded", "load"]

_PACKAGES = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dotenv": "python-dotenv",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Import name to distribution name where they differ."""

_GUARD_REMEDY = (
    "opscan imports the file to find its models: keep what trains or reads data under "
    '`if __name__ == "__main__":`'
)
_IMPORT_REMEDY = (
    "opscan must run in the environment that trains the model; a file with relative imports is "
    "named as a module: package.module"
)


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A file or module that has been run."""

    module: ModuleType
    tree: ast.Module
    """Empty when the module has no Python source."""
    display: str
    """How messages name it: the path relative to the working directory, or the module."""
    cwd: Path
    path: Path | None = None
    notes: tuple[str, ...] = field(default=())


def load(source: Source, cwd: Path) -> Loaded:
    """Import what a source names, as a module whose name is not `__main__`.

    `sys.path` gets the file's directory in front and `cwd` at the end (for a dotted module: `cwd`
    in front), `sys.argv` is the file alone. Raises `LocateError` for whatever keeps it from being
    imported, except that a file that fails after it has built a model at module level is used as
    far as it ran, with a note. A time limit is the caller's to set.
    """
    if source.path is None:
        return _load_module(source, cwd)
    package = _package_of(source.path)
    if package is not None:
        root, name = package
        _parse(source.path, cwd)
        _set_path([str(root), *sys.path, str(cwd)], str(source.path))
        return _import(name, display_path(source.path, cwd), cwd)
    return _load_file(source.path, cwd)


def _set_path(path: list[str], argument: str) -> None:
    sys.path[:] = dict.fromkeys(path)
    sys.argv[:] = [argument]
    importlib.invalidate_caches()


def _package_of(path: Path) -> tuple[Path, str] | None:
    """The directory above the outermost package that holds the file, and its dotted name."""
    if not (path.parent / "__init__.py").is_file():
        return None
    parts = [] if path.stem == "__init__" else [path.stem]
    root = path.parent
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    return (root, ".".join(parts)) if all(part.isidentifier() for part in parts) else None


def _parse(path: Path, cwd: Path) -> ast.Module:
    shown = display_path(path, cwd)
    try:
        return ast.parse(read_source(path), filename=str(path))
    except SyntaxError as error:
        raise _syntax_error(error, shown) from error
    except (UnicodeDecodeError, ValueError) as error:
        raise SourceError(
            f"{shown}: not a Python source file: {error}", remedy="name a text file in UTF-8"
        ) from error
    except OSError as error:
        raise SourceError(
            f"{shown}: cannot be read: {error.strerror}", remedy="check its permissions"
        ) from error


def _syntax_error(error: SyntaxError, shown: str) -> LocateError:
    line = (error.text or "").rstrip()
    code = f"\n    {line.strip()}" if line else ""
    place = f"{shown}:{error.lineno}" if error.lineno else shown
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return SourceError(
        f"{place}: syntax error: {error.msg}{code}",
        remedy=f"mend the file; opscan reads it as Python {version}",
    )


def _load_file(path: Path, cwd: Path) -> Loaded:
    tree = _parse(path, cwd)
    _set_path([str(path.parent), *sys.path, str(cwd)], str(path))
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SourceError(f"{display_path(path, cwd)}: not a Python file", remedy=_GUARD_REMEDY)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    shown = display_path(path, cwd)
    loader = spec.loader
    notes = _run(lambda: loader.exec_module(module), module, shown, cwd)
    return Loaded(module=module, tree=tree, display=shown, cwd=cwd, path=path, notes=notes)


def _module_name(path: Path) -> str:
    """The name under which sibling files import it, unless that belongs to another module."""
    stem = path.stem
    if stem.isidentifier() and stem not in sys.stdlib_module_names:
        present = sys.modules.get(stem)
        if present is not None:
            file = getattr(present, "__file__", None)
            if file and path.samefile(file):
                return stem
        else:
            spec = PathFinder.find_spec(stem, [str(path.parent)])
            if spec is not None and spec.origin and path.samefile(spec.origin):
                return stem
    cleaned = "".join(char if char.isalnum() else "_" for char in stem)
    return f"opscan_user_{cleaned}"


def _load_module(source: Source, cwd: Path) -> Loaded:
    assert source.module is not None
    _set_path([str(cwd), *sys.path], source.module)
    return _import(source.module, source.module, cwd)


def _import(name: str, shown: str, cwd: Path) -> Loaded:
    holder: list[ModuleType] = []
    _run(lambda: holder.append(importlib.import_module(name)), None, shown, cwd)
    module = holder[0]
    file = getattr(module, "__file__", None)
    path = Path(file) if file and file.endswith(".py") else None
    tree = _parse(path, cwd) if path is not None else ast.Module(body=[], type_ignores=[])
    return Loaded(module=module, tree=tree, display=shown, cwd=cwd, path=path)


def _run(
    execute: Callable[[], object], module: ModuleType | None, shown: str, cwd: Path
) -> tuple[str, ...]:
    """Execute the import; returns notes when it failed after models were made."""
    try:
        execute()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if module is not None and _has_model(module) and not isinstance(error, ImportError):
            return (f"the file was used as far as it ran; {_stop(error, cwd)}",)
        raise _import_failure(error, shown, cwd) from error
    return ()


def _stop(error: BaseException, cwd: Path) -> str:
    """Why a file went no further, in one line."""
    frame = user_frame(error)
    if needs_values(error) and frame is not None:
        place = f"{display_path(Path(frame.filename), cwd)}:{frame.lineno}"
        return f"{place} reads the value of a tensor: {(frame.line or '').strip()}"
    return describe(error, cwd).replace("\n    ", ": ")


def _has_model(module: ModuleType) -> bool:
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    models = (
        value
        for value in vars(module).values()
        if isinstance(value, torch.nn.Module) and not isinstance(value, torch.nn.modules.loss._Loss)
    )
    return any(True for _ in models)


def _import_failure(error: BaseException, shown: str, cwd: Path) -> LocateError:
    if isinstance(error, SyntaxError):
        file = display_path(Path(error.filename), cwd) if error.filename else shown
        return _syntax_error(error, file)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return _missing_package(error, error.name, shown, cwd)
    frame = user_frame(error)
    place = f"{display_path(Path(frame.filename), cwd)}:{frame.lineno}" if frame else shown
    if isinstance(error, SystemExit):
        return LocateError(
            f"{place}: the file exits while it is imported (exit code {error.code})",
            remedy=_GUARD_REMEDY,
        )
    if isinstance(error, EOFError):
        return LocateError(
            f"{place}: the file reads standard input while it is imported", remedy=_GUARD_REMEDY
        )
    return LocateError(
        f"{shown} cannot be imported: {describe(error, cwd)}",
        remedy=_IMPORT_REMEDY if isinstance(error, ImportError) else _GUARD_REMEDY,
    )


def _missing_package(error: ModuleNotFoundError, name: str, shown: str, cwd: Path) -> LocateError:
    frame = user_frame(error)
    place = f"{display_path(Path(frame.filename), cwd)}:{frame.lineno}" if frame else shown
    top = name.partition(".")[0]
    if top in sys.modules and name != top:
        return SourceError(
            f"{place}: the module {name} does not exist in the package {top}",
            remedy="check the spelling and the installed version; opscan must run in the "
            "environment that trains the model",
        )
    if name == shown or shown.startswith(f"{name}."):
        return SourceError(
            f"{shown}: no module named {name}",
            remedy="check the spelling; modules are looked up from the current directory and in "
            "the environment that opscan runs in",
        )
    return SourceError(
        f"{place}: the package {top} is not installed here",
        remedy=f"run opscan in the environment that trains the model, or "
        f"`pip install {_PACKAGES.get(top, top)}`; a package of your own is found from the "
        "directory that holds it",
    )
