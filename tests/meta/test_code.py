"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import importlib
import re
import statistics
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = [
    path
    for package in ("scanner", "opdb")
    for path in sorted((ROOT / package).rglob("*.py"))
    if "data" not in path.parts
]
LOOKS_AROUND = {"os.environ", "os.getenv", "os.getcwd", "Path.cwd", "sys.exit", "print"}
LOOKS_AROUND |= {"date.today", "datetime.now", "time.time"}
LARGE = {"scanner/records.py"}
"""The contract of all stages, kept in one place; half of it is documentation."""


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> list[tuple[str, int]]:
    tree = ast.parse(path.read_text())
    return [
        (node.name, (node.end_lineno or 0) - node.lineno + 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_files_and_functions_are_small() -> None:
    large = {named(path) for path in FILES if len(path.read_text().splitlines()) > 300}
    assert large - LARGE == set()
    long = [(named(path), *each) for path in FILES for each in functions(path) if each[1] > 80]
    assert long == []


def test_most_functions_are_very_small() -> None:
    sizes = sorted(lines for path in FILES for _, lines in functions(path))
    assert statistics.median(sizes) <= 11
    assert sizes[len(sizes) * 9 // 10] <= 35


def called(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names.add(f"{node.value.id}.{node.attr}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            names.add(node.func.id)
    return names


def test_stages_neither_print_nor_exit_nor_look_around() -> None:
    stages = [ROOT / "scanner" / name for name in ("pipeline.py", "settings.py", "revision.py")]
    stages.append(ROOT / "scanner" / "settings_file.py")
    for name in ("judge", "report", "suppress"):
        stages += sorted((ROOT / "scanner" / name).rglob("*.py"))
    found = {named(path): called(path) & LOOKS_AROUND for path in stages}
    assert {name: calls for name, calls in found.items() if calls} == {}


def exports(path: Path) -> bool:
    return any(
        isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
        for node in ast.parse(path.read_text()).body
    )


def test_what_modules_export_exists_and_is_sorted() -> None:
    for path in FILES:
        relative = path.relative_to(ROOT).with_suffix("")
        if not exports(path) or relative.parts[:2] == ("opdb", "build"):  # needs its own extra
            continue
        name = ".".join(part for part in relative.parts if part != "__init__")
        module = importlib.import_module(name)
        assert [each for each in module.__all__ if not hasattr(module, each)] == [], name
        assert len(set(module.__all__)) == len(module.__all__), name


def test_the_program_speaks_of_itself_only() -> None:
    for path in FILES:
        assert not re.search(r"/work/|/root/|TODO|FIXME", path.read_text()), named(path)
