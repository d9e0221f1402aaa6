from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scanner.backends.interface import DeviceFacts
from scanner.errors import DataError
from scanner.probe.observer import Observer
from scanner.probe.protocol import Death, Outcome
from scanner.probe.session import opened
from scanner.probe.store import Store, Stored, StoreKey, open_store
from tests.probe.iso_fakes import call, outcomes

FACTS = DeviceFacts(
    backend="mps", name="Apple M3", framework="torch 2.9.1", os="macOS 15.5 (24F74)"
)
PLACE = StoreKey.of(FACTS, "plain")


def outcome(key: str, status: str = "native", **fields: object) -> Outcome:
    return Outcome(key=key, status=status, reason="", **fields)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fresh(tmp_path / "store.sqlite")


def fresh(path: Path) -> Store:
    store, notice = open_store(path)
    assert notice == ""
    return store


def test_what_was_put_is_got_again_by_another_scan(tmp_path: Path) -> None:
    crash = outcome("a", "crash", death=Death(kind="signal", what="SIGABRT"))
    with fresh(tmp_path / "store") as store:
        store.put_many(PLACE, [crash, outcome("b")])
    with fresh(tmp_path / "store") as store:
        assert store.get_many(PLACE, ["a", "b", "c"]) == {"a": crash, "b": outcome("b")}


@pytest.mark.parametrize("field", StoreKey.__struct_fields__)
def test_every_part_of_the_key_tells_measurements_apart(store: Store, field: str) -> None:
    store.put_many(PLACE, [outcome("a")])
    other = msgspec.structs.replace(PLACE, **{field: "another"})
    assert store.get_many(other, ["a"]) == {}
    store.put_many(other, [outcome("a", "wrong")])
    assert store.get_many(PLACE, ["a"]) == {"a": outcome("a")}


def test_a_new_measurement_replaces_the_old(store: Store) -> None:
    store.put_many(PLACE, [outcome("a")])
    store.put_many(PLACE, [outcome("a", "crash")])
    assert store.get_many(PLACE, ["a"]) == {"a": outcome("a", "crash")}


def test_unknowns_and_drills_are_not_kept(store: Store) -> None:
    store.put_many(PLACE, [outcome("a", "unknown"), outcome("b", final=False)])
    drill = msgspec.structs.replace(PLACE, backend="drill")
    store.put_many(drill, [outcome("a")])
    assert list(store.export()) == []


def test_many_keys_at_once(store: Store) -> None:
    outcomes = [outcome(str(number)) for number in range(1700)]
    store.put_many(PLACE, outcomes)
    found = store.get_many(PLACE, [each.key for each in outcomes])
    assert found == {each.key: each for each in outcomes}


def test_an_export_imports_elsewhere_unchanged(store: Store, tmp_path: Path) -> None:
    store.put_many(PLACE, [outcome("b"), outcome("a", "wrong")])
    lines = list(store.export())
    assert [msgspec.json.decode(line, type=Stored).outcome.key for line in lines] == ["a", "b"]
    with fresh(tmp_path / "elsewhere") as other:
        imported = other.merge(lines)
        assert (imported.added, imported.replaced, imported.unchanged) == (2, 0, 0)
        assert list(other.export()) == lines
        assert other.merge(lines).unchanged == 2


def test_an_import_replaces_what_differs_and_names_what_it_refuses(store: Store) -> None:
    store.put_many(PLACE, [outcome("a")])
    line = msgspec.json.encode(Stored(place=PLACE, outcome=outcome("a", "wrong")))
    imported = store.merge([b"nonsense\n", b"\n", line, b'{"place":{}}'])
    assert imported.replaced == 1
    assert [number for number, _ in imported.refused] == [1, 4]
    assert store.get_many(PLACE, ["a"]) == {"a": outcome("a", "wrong")}


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\x00junk"])
def test_a_damaged_store_is_set_aside_once(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "store.sqlite"
    path.write_bytes(content)
    store, notice = open_store(path)
    with store:
        assert "damaged" in notice
        assert "store.sqlite.damaged" in notice
        store.put_many(PLACE, [outcome("a")])
    assert (tmp_path / "store.sqlite.damaged").read_bytes() == content
    with fresh(path) as store:
        assert store.get_many(PLACE, ["a"]) == {"a": outcome("a")}


def test_pages_damaged_in_the_middle_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with fresh(path) as store:
        store.put_many(PLACE, [outcome(str(number)) for number in range(500)])
    data = bytearray(path.read_bytes())
    data[8192:16384] = b"\xff" * 8192
    path.write_bytes(bytes(data))
    store, notice = open_store(path)
    with store:
        assert "damaged" in notice
        assert list(store.export()) == []


def test_a_newer_store_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(DataError, match="newer opscan"):
        open_store(path)
    assert path.read_bytes() == before


def test_a_row_that_is_damaged_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with fresh(path) as store:
        store.put_many(PLACE, [outcome("a"), outcome("b")])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE measurement SET outcome = '{\"key\":' WHERE config = 'a'")
    with fresh(path) as store:
        assert store.get_many(PLACE, ["a", "b"]) == {"b": outcome("b")}
        assert len(list(store.export())) == 1
        store.put_many(PLACE, [outcome("a")])
        assert len(list(store.export())) == 2


def test_a_file_with_other_columns_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE measurement (a, b)")
    store, notice = open_store(path)
    with store:
        assert "damaged" in notice
        store.put_many(PLACE, [outcome("a")])


@pytest.mark.parametrize(
    "line",
    [
        Stored(place=PLACE, outcome=outcome("a", "unknown")),
        Stored(place=PLACE, outcome=outcome("a", final=False)),
        Stored(place=PLACE, outcome=outcome("a"), schema="opscan.measurement/9"),
    ],
)
def test_what_no_export_has_is_refused(store: Store, line: Stored) -> None:
    imported = store.merge([msgspec.json.encode(line)])
    assert (imported.added, len(imported.refused)) == (0, 1)


def test_a_full_disk_ends_the_keeping_and_not_the_scan(tmp_path: Path) -> None:
    with fresh(tmp_path / "store") as store:
        store._connection.execute("PRAGMA query_only = ON")
        watcher = Reuse()
        (found,) = outcomes([call("fake::fine")], store=store, observer=watcher).values()
        assert found.status == "native"
        assert any("No more measurements are kept" in text for text in watcher.notices)


def test_a_store_that_cannot_be_used_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    watcher = Reuse()
    with ExitStack() as stack:
        assert opened(stack, tmp_path / "file" / "store", watcher) is None
    assert "not kept" in watcher.notices[0]


def test_a_place_that_cannot_hold_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "store"):
        with pytest.raises(DataError, match="cannot be used"):
            open_store(path)


def test_two_scans_write_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with fresh(path) as one, fresh(path) as other:
        one.put_many(PLACE, [outcome("a")])
        other.put_many(PLACE, [outcome("b")])
        assert set(one.get_many(PLACE, ["a", "b"])) == {"a", "b"}


def test_settings_of_the_fallback_variable_and_passes_do_not_share_measurements(
    tmp_path: Path,
) -> None:
    ways: list[dict[str, Any]] = [
        {"launch": {"fallback": False}},
        {"launch": {"fallback": True}},
        {"options": {"break_even": True}},
        {"options": {"precision": "float16"}},
    ]
    with fresh(tmp_path / "store") as store:
        for way in ways:
            for reused in (0, 1):
                watcher = Reuse()
                outcomes([call("fake::fine")], store=store, observer=watcher, **way)
                assert watcher.reused == reused


class Reuse(Observer):
    """Remembers how much was known from before, and what was said."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        """Kept."""
        self.notices.append(text)

    def ready(self, facts: DeviceFacts, total: int, reused: int) -> None:
        """Notes the last figure."""
        self.reused = reused
