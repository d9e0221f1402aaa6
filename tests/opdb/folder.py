"""A small data folder, written by hand, for tests that damage it."""

from pathlib import Path

HASH = "0" * 64
FILES = {
    "releases": [
        "#opdb.torch.releases\tschema=1",
        "release\twheel\tsha256\tcounts\ttracker",
        f"2.0.0\ttorch-2.0.0-x.whl\t{HASH}\tMPS=1,SparseMPS=0,SparseCsrMPS=0,ops=2\thttps://a/1",
        f"2.1.0\ttorch-2.1.0-x.whl\t{HASH}\tMPS=2,SparseMPS=1,SparseCsrMPS=0,ops=2\thttps://a/1",
    ],
    "mps": [
        "#opdb.torch.mps\tschema=1",
        "op\tkey\tfunction\treleases",
        "abs\tMPS\tkernel\t2.0.0..",
        "abs\tSparseMPS\tkernel\t2.1.0..",
        "sort\tMPS\tfallback\t2.1.0..",
    ],
    "ops": [
        "#opdb.torch.ops\tschema=1",
        "op\tcomposite\tcalls\tcpu\treleases",
        "abs\tnone\t-\tcpu\t2.0.0..",
        "sort\tnone\t-\tcpu\t2.0.0..",
    ],
    "groups": [
        "#opdb.torch.groups\tschema=1",
        "op\tvariant\tgroup\tview\treleases",
        "abs\tfunctional\tabs\t-\t2.0.0..",
        "sort\tfunctional\tsort\t-\t2.0.0..",
    ],
    "paths": [
        "#opdb.torch.paths\tschema=1",
        "op\tcall\twhen\treleases",
    ],
}


def write(folder: Path, **changed: list[str]) -> Path:
    """The folder, with some files' lines replaced."""
    for name, lines in (FILES | changed).items():
        (folder / f"{name}.tsv").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return folder


def with_line(name: str, number: int, line: str) -> dict[str, list[str]]:
    """Lines of one file with one (1-based) replaced."""
    lines = list(FILES[name])
    lines[number - 1] = line
    return {name: lines}
