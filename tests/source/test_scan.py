"""Files, the cache and the workers together."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from scanner.records import Finding, Target
from scanner.source import scan as scanning
from scanner.source import work
from scanner.source.discover import source_files
from scanner.source.scan import SourcePlan, scan_files

CUDA = "import torch\nmodel.cuda()\n"


@pytest.fixture
def always_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "_WORTH_A_CACHE", 0)


def scan(root: Path, *arguments: str, plan: SourcePlan | None = None) -> tuple[Finding, ...]:
    files = source_files(arguments or (".",), str(root))
    return scan_files(files, plan or SourcePlan()).source.findings


def said(findings: tuple[Finding, ...]) -> list[tuple[str, str, int]]:
    return [
        (each.rule, each.location.file, each.location.line) for each in findings if each.location
    ]


def test_findings_have_exact_places(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nif 'é':\n    x = [model.cuda()]  # why\n")
    (finding,) = scan(tmp_path)
    place = finding.location
    assert place is not None
    assert (place.line, place.column, place.end_line, place.end_column) == (3, 10, 3, 22)
    assert place.code == "x = [model.cuda()]  # why"
    assert finding.fix is not None
    assert not finding.fix.safe


def test_findings_come_in_the_order_of_files_and_lines(tmp_path: Path) -> None:
    for name in ("b.py", "a.py"):
        (tmp_path / name).write_text(CUDA + "x.cuda(); y.cuda()\n")
    assert said(scan(tmp_path)) == [
        ("OPS601", name, line) for name in ("a.py", "b.py") for line in (2, 3, 3)
    ]


def test_fingerprints_survive_moves_and_renames_and_tell_equals_apart(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CUDA + "model.cuda()\n")
    before = [each.fingerprint for each in scan(tmp_path)]
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    (tmp_path / "b.py").write_text("# new\n\n" + CUDA + "  \nmodel.cuda()\n")
    assert [each.fingerprint for each in scan(tmp_path)] == before
    assert len(set(before)) == 2


def test_files_that_mention_no_framework_are_not_parsed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("model.cuda( is no Python")
    source = scan_files(source_files(["a.py"], str(tmp_path)), SourcePlan()).source
    assert (source.files, source.skipped, source.findings) == (1, 1, ())


@pytest.mark.parametrize(
    ("content", "why", "line"),
    [
        (b"import torch\nmodel.cuda(\n", "never closed", 2),
        (b"# torch\nmodel.cuda()\n\xe9", "line 3 is not valid utf-8", 1),
        (b"torch.cuda" + b"\0", "null byte", 1),
        (b"torch.cuda(" + b"(" * 1000, "too many nested parentheses", 1),
    ],
    ids=["syntax", "encoding", "null", "depth"],
)
def test_what_is_no_python_is_a_finding(
    tmp_path: Path, content: bytes, why: str, line: int
) -> None:
    (tmp_path / "a.py").write_bytes(content)
    (named,) = scan(tmp_path, "a.py")
    (met,) = scan(tmp_path, ".")
    assert (named.rule, met.rule) == ("OPS903", "OPS906")
    assert why in named.message
    assert named.location is not None
    assert (named.location.file, named.location.line) == ("a.py", line)


def test_a_directory_in_place_of_a_file_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    files = source_files(["a.py"], str(tmp_path))
    (tmp_path / "a.py").unlink()
    (finding,) = scan_files(files, SourcePlan()).source.findings
    assert finding.rule == "OPS903"
    assert "No such file" in finding.message


def test_deep_and_long_code_is_judged(tmp_path: Path) -> None:
    sum_of_900 = " + ".join(["1"] * 900)
    text = f"import torch\nx = {sum_of_900}; m.cuda()\n"
    (tmp_path / "a.py").write_text(text + "y = '" + "é" * 1_000_000 + "', m.cuda()\n")
    places = [each.location for each in scan(tmp_path)]
    assert [place.column for place in places if place] == [len(sum_of_900) + 7, 1_000_009]


def test_a_long_chain_of_elif_is_judged(tmp_path: Path) -> None:
    branches = "".join(f"elif kind == {kind}:\n    m.cuda()\n" for kind in range(950))
    (tmp_path / "a.py").write_text(f"import torch\nif kind is None:\n    pass\n{branches}")
    assert [each.rule for each in scan(tmp_path)] == ["OPS601"] * 950


def test_carriage_returns_and_form_feeds_end_no_line_twice(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"\xef\xbb\xbfimport torch\r\n\x0cm.cuda()\r\n\rm.cuda()\r\n")
    assert [line for _, _, line in said(scan(tmp_path))] == [2, 4]


def test_standard_input_is_a_file() -> None:
    plan = SourcePlan(stdin=CUDA.encode)
    (finding,) = scan_files(source_files(["-"], "/"), plan).source.findings
    assert said((finding,)) == [("OPS601", "<stdin>", 2)]


@pytest.mark.usefixtures("always_cached")
def test_the_cache_knows_content_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    plan = SourcePlan(cache=lambda: tmp_path / "c" / "source.sqlite")
    first = scan(tmp_path, plan=plan)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    monkeypatch.setattr(work, "examine", None)
    assert said(scan(tmp_path, plan=plan)) == [("OPS601", "b.py", 2)]
    assert [each.fingerprint for each in first] == [
        each.fingerprint for each in scan(tmp_path, plan=plan)
    ]


@pytest.mark.usefixtures("always_cached")
def test_other_targets_and_other_content_are_not_in_the_cache(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    path = tmp_path / "source.sqlite"
    for version in ("2.9.1", "2.15.0"):
        targets = (Target(framework="torch", version=version),)
        scan(tmp_path, plan=SourcePlan(targets=targets, cache=lambda: path))
    import sqlite3

    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM found").fetchone() == (2,)
    connection.close()
    (tmp_path / "a.py").write_text("import torch\n")
    assert scan(tmp_path, plan=SourcePlan(cache=lambda: path)) == ()


@pytest.mark.parametrize("change", ["substr(findings, 1, 99)", "NULL", "x'5b5d'", "'[]'"])
@pytest.mark.usefixtures("always_cached")
def test_a_row_of_the_cache_that_has_changed_is_not_believed(tmp_path: Path, change: str) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    path = tmp_path / "c" / "source.sqlite"
    plan = SourcePlan(cache=lambda: path)
    before = scan(tmp_path, plan=plan)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE found SET findings = {change}")
    after = scan_files(source_files(["."], str(tmp_path)), plan)
    assert after.source.findings == before
    assert "was damaged" in "".join(after.notices)


@pytest.mark.usefixtures("always_cached")
@pytest.mark.parametrize("content", [b"no database" * 100, b""], ids=["damaged", "empty"])
def test_a_damaged_cache_starts_anew_and_says_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    path = tmp_path / "source.sqlite"
    path.write_bytes(content)
    plan = SourcePlan(cache=lambda: path)
    files = source_files(["a.py"], str(tmp_path))
    first = scan_files(files, plan)
    assert len(first.source.findings) == 1
    assert ("was damaged" in "".join(first.notices)) == bool(content)
    assert scan_files(files, plan) == first._replace(notices=())


@pytest.mark.usefixtures("always_cached")
def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    (tmp_path / "file").write_text("")
    scanned = scan(tmp_path, plan=SourcePlan(cache=lambda: tmp_path / "file" / "source.sqlite"))
    assert len(scanned) == 1


def test_processes_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        (tmp_path / f"{number}.py").write_text(CUDA * (number + 1))
    alone = scan(tmp_path)
    monkeypatch.setattr(work, "_WORTH_A_PROCESS", 0)
    monkeypatch.setattr(work, "_CHUNK_BYTES", 50)
    assert scan(tmp_path, plan=SourcePlan(processes=2)) == alone
    assert len(alone) == 21


def test_a_bug_in_a_rule_is_told_with_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("scanner.source.check.Checker.findings", broken)
    (tmp_path / "a.py").write_text(CUDA)
    scanned = scan_files(source_files(["."], str(tmp_path)), SourcePlan())
    assert [each.rule for each in scanned.source.findings] == ["OPS904"]
    assert "a bug" in scanned.tracebacks[0]
