"""Merging and rendering, on facts written by hand; and the command's exit statuses."""

import pytest

from opdb import check, tables
from opdb.build import __main__ as command
from opdb.build import torch_data, write
from opdb.build.derive import Facts
from opdb.build.schema import parse
from scanner.errors import DataError

SCHEMAS = [
    "abs(Tensor self) -> Tensor",
    "abs_(Tensor(a!) self) -> Tensor(a!)",
    "t(Tensor(a) self) -> Tensor(a)",
]


def facts(registered, schemas=SCHEMAS):
    parsed = {schema.name: schema for schema in map(parse, schemas)}
    return Facts(
        registered=registered,
        composite=dict.fromkeys(parsed, "none") | {"abs_": "explicit"},
        calls={"abs_": frozenset({"copy_", "abs"})},
        paths={("abs_", "abs"): "always", ("abs_", "copy_"): "maybe"},
        cpu=frozenset({"abs"}),
        schemas=parsed,
        tracker="https://example.org/1",
        yaml={},
    )


def derived(release, registered, **more):
    from pathlib import Path

    one = facts(registered, **more)
    wheel = Path(f"torch-{release}-x.whl")
    line = write.provenance(release, wheel, "0" * 64, one)
    return torch_data.Derived(release, line, tuple(write.rows(one)))


OLD = derived("2.0.0", {("abs", "MPS"): "fallback"}, schemas=SCHEMAS[:2])
NEW = derived("2.0.1", {("abs", "MPS"): "kernel", ("t", "MPS"): "kernel"})


def save(folder, files):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def test_two_releases_become_sorted_intervals(tmp_path):
    files = torch_data.merge(tmp_path, [NEW, OLD])
    body = {name: text.splitlines()[2:] for name, text in files.items()}
    assert body["mps.tsv"] == [
        "abs\tMPS\tfallback\t2.0.0",
        "abs\tMPS\tkernel\t2.0.1..",
        "t\tMPS\tkernel\t2.0.1..",
    ]
    assert body["ops.tsv"] == [
        "abs\tnone\t-\tcpu\t2.0.0..",
        "abs_\texplicit\tabs,copy_\t-\t2.0.0..",
        "t\tnone\t-\t-\t2.0.1..",
    ]
    assert body["groups.tsv"] == [
        "abs\tfunctional\tabs\t-\t2.0.0..",
        "abs_\tinplace\tabs\t-\t2.0.0..",
        "t\tfunctional\tt\tview\t2.0.1..",
    ]
    # `abs` has a kernel in 2.0.1 and is kept: it runs on the CPU in 2.0.0. `copy_` is no operator.
    # There `abs_` always calls it, and so is itself a fallback: no arguments decide.
    assert body["paths.tsv"] == []
    assert [line.split("\t")[:1] + line.split("\t")[3:4] for line in body["releases.tsv"]] == [
        ["2.0.0", "MPS=1,SparseMPS=0,SparseCsrMPS=0,MPS.python=0,ops=2"],
        ["2.0.1", "MPS=2,SparseMPS=0,SparseCsrMPS=0,MPS.python=0,ops=3"],
    ]
    assert check.problems(save(tmp_path, files)) == []


def test_the_order_of_derivation_does_not_matter(tmp_path):
    assert torch_data.merge(tmp_path, [OLD, NEW]) == torch_data.merge(tmp_path, [NEW, OLD])


def test_one_release_after_the_other_gives_the_same_files(tmp_path):
    at_once = torch_data.merge(tmp_path, [OLD, NEW])
    save(tmp_path, torch_data.merge(tmp_path, [NEW]))
    save(tmp_path, torch_data.merge(tmp_path, [OLD]))
    assert torch_data.merge(tmp_path, []) == at_once


def test_deriving_again_replaces_a_release(tmp_path):
    save(tmp_path, torch_data.merge(tmp_path, [OLD, NEW]))
    again = derived("2.0.1", {("abs", "MPS"): "fallback"}, schemas=SCHEMAS[:2])
    files = torch_data.merge(tmp_path, [again])
    assert files["mps.tsv"].splitlines()[2:] == ["abs\tMPS\tfallback\t2.0.0.."]
    assert "\nt\t" not in files["ops.tsv"]


@pytest.fixture
def wheels(monkeypatch):
    """Deriving reads no wheel, in this process."""
    known = {"2.0.0": OLD, "2.0.1": NEW}

    class Pool:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def map(self, function, jobs, chunksize):
            return [known[release] for release, _, _ in jobs]

    class Context:
        def Pool(self, jobs):  # noqa: N802
            return Pool()

    monkeypatch.setattr(command.multiprocessing, "get_context", lambda method: Context())
    monkeypatch.setattr(torch_data, "RELEASES", tuple(known))
    return known


def test_the_command_writes_and_then_finds_no_difference(tmp_path, wheels, capsys):
    data = tmp_path / "data"
    assert command.main(["torch", "--data", str(data)]) == 0
    before = {path.name: path.read_bytes() for path in data.iterdir()}
    assert set(before) == {table.file for table in tables.TABLES}
    assert command.main(["torch", "--data", str(data), "--check"]) == 0
    assert {path.name: path.read_bytes() for path in data.iterdir()} == before
    assert capsys.readouterr() == ("", "")


def test_check_names_the_files_that_differ(tmp_path, wheels, capsys):
    data = tmp_path / "data"
    command.main(["torch", "--data", str(data)])
    mps = data / "mps.tsv"
    mps.write_text(
        mps.read_text("utf-8")
        .replace("fallback", "kernel\t2.0.0")
        .replace("kernel\t2.0.0\t2.0.0", "raises\t2.0.0"),
        "utf-8",
    )
    assert command.main(["torch", "--data", str(data), "--check", "--release", "2.0.0"]) == 1
    assert capsys.readouterr().err == f"{mps}: differs from what the wheels say\n"


def test_an_error_is_one_message_and_status_2(tmp_path, wheels, capsys, monkeypatch):
    def fail(folder):
        raise DataError("the index is away", remedy="Wait.")

    monkeypatch.setattr(torch_data, "recorded", fail)
    assert command.main(["torch", "--data", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "error: the index is away\n  Wait.\n"


def test_an_unknown_release_is_named(tmp_path, wheels, capsys):
    assert command.main(["torch", "--data", str(tmp_path), "--release", "9.9.9"]) == 2
    assert "9.9.9" in capsys.readouterr().err
