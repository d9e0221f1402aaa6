import pytest

from opdb import check, store
from scanner.errors import DataError
from tests.opdb.folder import FILES, HASH, with_line, write


def test_a_sound_folder_has_no_problem(tmp_path):
    assert check.problems(write(tmp_path)) == []


def test_the_delivered_data_are_sound():
    assert check.problems(store.default.folder) == []
    assert check.report().count("sound") == 7


@pytest.mark.parametrize(
    ("file", "line", "text", "where", "what"),
    [
        ("ops", 3, "b\tnone\t-\tcpu\t2.0.0..", 4, None),
        ("ops", 4, "abs\tnone\t-\tcpu\t2.0.0..", 4, "not in ascending order, or twice"),
        ("ops", 4, "aaa\tnone\t-\tcpu\t2.0.0..", 4, "not in ascending order, or twice"),
        ("ops", 4, "abs\tnone\t-\tdpu\t2.1.0..", 4, "'dpu' is not a cpu"),
        ("ops", 4, "sort\tmaybe\t-\tcpu\t2.0.0..", 4, "'maybe' is not a composite"),
        ("ops", 4, "sort\tnone\t-\tcpu\t2.0.0..2.1.0", 4, "is not the shortest form"),
        ("ops", 4, "sort\tnone\t-\tcpu\t2.5.0", 4, "unknown release '2.5.0'"),
        ("mps", 3, "abs\tCUDA\tkernel\t2.0.0..", 3, "'CUDA' is not a key"),
        ("mps", 4, "abs\tMPS\traises\t2.1.0..", 4, "two facts about abs in one release"),
        ("groups", 3, "abs\tfunctional\tabs\tmaybe\t2.0.0..", 3, "'maybe' is not a view"),
        ("ops", 4, "sort\tnone\t-", 4, "expected 5 columns"),
        ("releases", 4, FILES["releases"][2], 4, "releases are not in ascending order"),
    ],
)
def test_each_kind_of_damage_is_named_with_its_line(tmp_path, file, line, text, where, what):
    found = check.problems(write(tmp_path, **with_line(file, line, text)))
    if what is None:  # another name in the right place: only its count could tell, and it is right
        assert found == []
    else:
        assert any(f"{file}.tsv:{where}: " in each and what in each for each in found), found


def test_a_wheel_of_another_release_and_a_short_hash_are_named(tmp_path):
    line = "2.0.0\ttorch-2.1.0-x.whl\tabc\tMPS=1,SparseMPS=0,SparseCsrMPS=0,ops=2\thttps://a/1"
    found = check.problems(write(tmp_path, **with_line("releases", 3, line)))
    assert [each.partition("releases.tsv:3: ")[2] for each in found] == [
        "not a SHA-256: abc",
        "torch-2.1.0-x.whl is not a wheel of torch 2.0.0",
    ]


def test_counts_that_do_not_match_the_facts_are_named(tmp_path):
    counts = "MPS=3,SparseMPS=1,SparseCsrMPS=0,ops=2"
    line = f"2.1.0\ttorch-2.1.0-x.whl\t{HASH}\t{counts}\thttps://a/1"
    found = check.problems(write(tmp_path, **with_line("releases", 4, line)))
    assert [each.partition("releases.tsv:")[2] for each in found] == [
        "4: recorded MPS=3, and the files hold 2"
    ]


def test_a_newer_schema_is_the_only_problem_named(tmp_path):
    write(tmp_path, **with_line("mps", 1, "#opdb.torch.mps\tschema=7"))
    found = check.problems(tmp_path)
    assert len(found) == 1
    assert "mps.tsv:1: schema 7 is newer" in found[0]


def test_the_report_of_a_damaged_folder_is_an_error(tmp_path):
    write(tmp_path, **with_line("ops", 4, "abs\tnone\t-\tcpu\t2.0.0.."))
    with pytest.raises(DataError, match=r"ops\.tsv:4") as caught:
        check.report(tmp_path)
    assert "python -m opdb.build torch" in caught.value.remedy
