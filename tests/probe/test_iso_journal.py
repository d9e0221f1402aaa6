from __future__ import annotations

from pathlib import Path

import pytest

from scanner.errors import DataError, UsageError
from scanner.probe.journal import Journal, boot_id
from scanner.probe.protocol import Outcome


def outcome(key: str, **fields: object) -> Outcome:
    return Outcome(key=key, status="native", reason="", **fields)  # type: ignore[arg-type]


def session(path: Path, *keys: str, boot: str = "", begun: tuple[str, ...] = ()) -> None:
    with Journal(path, "scope", boot=boot) as journal:
        for key in keys:
            journal.begun(key)
            journal.add(outcome(key))
        for key in begun:
            journal.begun(key)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "journal.jsonl"


def test_a_later_session_knows_what_earlier_ones_finished(path: Path) -> None:
    session(path, "a", "b")
    session(path, "c")
    with Journal(path, "scope") as journal:
        assert journal.outcomes == {key: outcome(key) for key in "abc"}
        assert journal.dropped == 0


def test_the_last_outcome_of_a_key_holds(path: Path) -> None:
    with Journal(path, "scope") as journal:
        journal.add(outcome("a"))
        journal.add(outcome("a", seconds=2.0))
    with Journal(path, "scope") as journal:
        assert journal.outcomes["a"].seconds == 2.0


def test_what_was_not_run_is_tried_again(path: Path) -> None:
    with Journal(path, "scope") as journal:
        journal.add(outcome("a", final=False))
    with Journal(path, "scope") as journal:
        assert journal.outcomes == {}


def test_every_cut_loses_at_most_the_line_that_was_cut(path: Path) -> None:
    session(path, "a", "b", "c")
    whole = path.read_bytes()
    ends = [number for number, byte in enumerate(whole) if byte == ord("\n")]
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with Journal(path, "scope") as journal:
            finished = len([end for end in ends if end < size])
            # The session's own line, then begin and outcome of each.
            assert len(journal.outcomes) == max(0, (finished - 1) // 2)
            journal.add(outcome("d"))
        with Journal(path, "scope") as journal:
            assert "d" in journal.outcomes
            assert journal.dropped == 0


def test_a_line_damaged_in_the_middle_spoils_no_other(path: Path) -> None:
    session(path, "a", "b")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][:20] + b"\xff" + lines[2][21:]
    path.write_bytes(b"".join(lines))
    with Journal(path, "scope") as journal:
        assert set(journal.outcomes) == {"b"}
        assert journal.dropped == 1


def test_a_journal_of_another_scan_is_replaced(path: Path) -> None:
    session(path, "a")
    with Journal(path, "another scope") as journal:
        assert journal.outcomes == {}
        assert journal.replaced
    with Journal(path, "another scope") as journal:
        assert not journal.replaced


def test_a_file_that_is_no_journal_is_replaced(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("dear diary\n")
    with Journal(path, "scope") as journal:
        assert journal.outcomes == {}
    session(path, "a")
    with Journal(path, "scope") as journal:
        assert set(journal.outcomes) == {"a"}


def test_nothing_is_seen_before_it_is_on_the_disk(path: Path) -> None:
    with Journal(path, "scope") as journal:
        journal.add(outcome("a"))
        assert b'"a"' not in path.read_bytes()
        journal.commit()
        assert b'"a"' in path.read_bytes()


def test_two_scans_do_not_share_a_journal(path: Path) -> None:
    with Journal(path, "scope"), pytest.raises(UsageError, match="another scan is writing"):
        Journal(path, "scope")
    session(path, "a")


def test_a_journal_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "journal"):
        with pytest.raises(DataError, match="cannot be written"):
            Journal(path, "scope")


def test_what_took_the_machine_down_twice_is_fatal(path: Path) -> None:
    session(path, "a", boot="1", begun=("x", "y"))
    session(path, "y", boot="2", begun=("x",))
    with Journal(path, "scope", boot="2") as journal:
        assert journal.fatal == frozenset()
        journal.begun("x")
    with Journal(path, "scope", boot="3") as journal:
        assert journal.fatal == {"x"}


def test_a_killed_scan_is_not_a_machine_that_went_down(path: Path) -> None:
    for _ in range(4):
        session(path, boot="1", begun=("x",))
    with Journal(path, "scope", boot="1") as journal:
        assert journal.fatal == frozenset()


def test_boot_id(tmp_path: Path) -> None:
    (tmp_path / "boot_id").write_text("0b5e\n")
    assert boot_id(tmp_path / "boot_id") == "0b5e"
    assert boot_id() == boot_id()
