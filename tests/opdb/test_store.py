import pytest

from opdb import tables
from opdb.store import Store
from scanner.errors import DataError
from tests.opdb.folder import with_line, write


def test_finds_the_lines_of_one_op(tmp_path):
    store = Store(write(tmp_path))
    found = store.find(tables.MPS, "abs")
    assert [(span.values, span.ranges) for span in found] == [
        (("MPS", "kernel"), ((0, 1),)),
        (("SparseMPS", "kernel"), ((1, 1),)),
    ]


@pytest.mark.parametrize("name", ["ab", "bs", "op", "kernel", "", "sort\tnone", "x\nsort"])
def test_finds_whole_names_only(tmp_path, name):
    assert Store(write(tmp_path)).find(tables.OPS, name) == []


def test_finding_and_reading_all_agree(tmp_path):
    store = Store(write(tmp_path))
    for table in (tables.MPS, tables.OPS, tables.GROUPS):
        everything = store.all(table)
        assert [s for op in ("abs", "sort") for s in store.find(table, op)] == everything


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"releases\.tsv: cannot be read"):
        _ = Store(tmp_path).releases


def test_a_newer_schema_asks_for_an_upgrade(tmp_path):
    write(tmp_path, **with_line("ops", 1, "#opdb.torch.ops\tschema=2"))
    with pytest.raises(DataError, match=r"ops\.tsv:1: schema 2 is newer") as caught:
        Store(tmp_path).find(tables.OPS, "abs")
    assert "pip install --upgrade" in caught.value.remedy


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (1, "op\tcomposite\tcalls\tcpu\treleases"),
        (1, "#opdb.torch.mps\tschema=1"),
        (1, "#opdb.torch.ops\tschema=one"),
        (2, "op\tcpu\treleases"),
    ],
)
def test_a_damaged_header_is_named(tmp_path, line, text):
    write(tmp_path, **with_line("ops", line, text))
    with pytest.raises(DataError, match=r"ops\.tsv:1: the header of table ops") as caught:
        Store(tmp_path).find(tables.OPS, "abs")
    assert "python -m opdb.build torch" in caught.value.remedy


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("sort\tnone\t-\t2.0.0..", "expected 5 columns"),
        ("sort\tnone\t\tcpu\t2.0.0..", "expected 5 columns"),
        ("sort\tnone\t-\tcpu\t2.0.0..9.9.9", "unknown release '9.9.9'"),
        ("sort\tnone\t-\tcpu\t2.1.0..2.0.0", "not ascending"),
    ],
)
def test_a_damaged_line_is_named_when_it_is_needed(tmp_path, text, what):
    store = Store(write(tmp_path, **with_line("ops", 4, text)))
    assert store.find(tables.OPS, "abs")
    with pytest.raises(DataError, match=rf"ops\.tsv:4: .*{what}"):
        store.find(tables.OPS, "sort")
    with pytest.raises(DataError, match=rf"ops\.tsv:4: .*{what}"):
        store.all(tables.OPS)


def test_bytes_that_are_not_text_are_an_error(tmp_path):
    (write(tmp_path) / "mps.tsv").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"mps\.tsv: cannot be read"):
        Store(tmp_path).find(tables.MPS, "abs")
