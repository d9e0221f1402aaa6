"""Measurements that outlive a scan: configuration × framework × system × chip × backend.

A sqlite file, in write-ahead mode, so that scans at the same time do not disturb each other.
Rows are JSON text, and an export is JSON lines of the same. A file that cannot be read is set
aside and replaced: it holds nothing that cannot be measured again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from types import TracebackType

import msgspec

from scanner.backends.interface import DeviceFacts
from scanner.errors import DataError
from scanner.probe.protocol import Outcome

__all__ = ["Imported", "Store", "StoreKey", "Stored", "open_store"]

_VERSION = 1
_SCHEMA_NAME = "opscan.measurement/1"
_CHUNK = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS measurement (
    config TEXT NOT NULL, conditions TEXT NOT NULL, backend TEXT NOT NULL, chip TEXT NOT NULL,
    framework TEXT NOT NULL, os TEXT NOT NULL, outcome TEXT NOT NULL,
    PRIMARY KEY (config, conditions, backend, chip, framework, os)
) WITHOUT ROWID
"""
_COLUMNS = ("config", "conditions", "backend", "chip", "framework", "os", "outcome")
_PLACE = "conditions = ? AND backend = ? AND chip = ? AND framework = ? AND os = ?"
_ENCODER = msgspec.json.Encoder()


class StoreKey(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how something was measured."""

    conditions: str
    """Digest of options and variables, see `scanner.probe.plan.conditions_key`."""
    backend: str
    chip: str
    framework: str
    os: str

    @staticmethod
    def of(facts: DeviceFacts, conditions: str) -> StoreKey:
        """The key of what this device measures under these conditions."""
        return StoreKey(
            conditions=conditions,
            backend=facts.backend,
            chip=facts.name,
            framework=facts.framework,
            os=facts.os,
        )


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an export."""

    schema: str = _SCHEMA_NAME
    place: StoreKey
    outcome: Outcome


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import brought."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    refused: tuple[tuple[int, str], ...] = ()
    """Line number (from 1) and reason of each line that holds no measurement."""


class Store:
    """An open store. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = _connect(path)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def get_many(self, place: StoreKey, keys: Iterable[str]) -> dict[str, Outcome]:
        """What is known about these configurations at this place, by key."""
        wanted = list(keys)
        found: dict[str, Outcome] = {}
        for start in range(0, len(wanted), _CHUNK):
            chunk = wanted[start : start + _CHUNK]
            marks = ",".join("?" * len(chunk))
            rows = self._connection.execute(
                f"SELECT config, outcome FROM measurement WHERE {_PLACE} AND config IN ({marks})",
                [*_columns(place), *chunk],
            )
            found.update(
                {key: outcome for key, text in rows if (outcome := _outcome(text)) is not None}
            )
        return found

    def put_many(self, place: StoreKey, outcomes: Iterable[Outcome]) -> None:
        """Keep what says something about an op: neither unknowns nor drills.

        Raises `DataError` when the file cannot be written.
        """
        rows = [_row(place, each) for each in outcomes if _is_kept(place, each)]
        try:
            with self._connection:
                self._connection.executemany(
                    "INSERT OR REPLACE INTO measurement VALUES (?, ?, ?, ?, ?, ?, ?)", rows
                )
        except sqlite3.Error as error:
            raise _unusable(self._path, str(error)) from None

    def export(self) -> Iterator[bytes]:
        """Every measurement, one JSON line each, sorted."""
        rows = self._connection.execute(
            "SELECT conditions, backend, chip, framework, os, outcome FROM measurement"
            " ORDER BY backend, chip, framework, os, conditions, config"
        )
        for *columns, text in rows:
            place = StoreKey(**dict(zip(StoreKey.__struct_fields__, columns, strict=True)))
            if (outcome := _outcome(text)) is None:
                continue
            yield _ENCODER.encode(Stored(place=place, outcome=outcome)) + b"\n"

    def merge(self, lines: Iterable[bytes]) -> Imported:
        """Add an export's measurements; those of the same key replace what is here.

        Lines that hold no measurement are refused one by one and spoil nothing else.
        """
        counts = {"added": 0, "replaced": 0, "unchanged": 0}
        refused: list[tuple[int, str]] = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                stored = _stored(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                refused.append((number, str(error)))
                continue
            counts[self._merge(stored)] += 1
        return Imported(**counts, refused=tuple(refused))

    def _merge(self, stored: Stored) -> str:
        key = stored.outcome.key
        present = self.get_many(stored.place, [key]).get(key)
        if present == stored.outcome:
            return "unchanged"
        self.put_many(stored.place, [stored.outcome])
        return "added" if present is None else "replaced"


def open_store(path: Path) -> tuple[Store, str]:
    """The store at `path`, made if there is none, and what the user should be told, or nothing.

    A file that is no store of ours is renamed and replaced. Raises `DataError` when a newer
    opscan wrote it, or when it can be neither read nor replaced.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return Store(path), ""
    except sqlite3.OperationalError as error:
        raise _unusable(path, str(error)) from None
    except sqlite3.DatabaseError as error:
        aside = _set_aside(path)
        notice = f"{path} is damaged ({error}); it is now {aside.name}, and measuring starts anew."
        return Store(path), notice
    except OSError as error:
        raise _unusable(path, str(error.strerror)) from None


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30)
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise DataError(
                f"{path} was written by a newer opscan",
                remedy="Update opscan.",
            )
        connection.execute("PRAGMA journal_mode = WAL")
        # A power loss may cost the last rows, which the journal has, but not the file.
        connection.execute("PRAGMA synchronous = NORMAL")
        with connection:
            connection.execute(_SCHEMA)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        if _column_names(connection) != _COLUMNS:
            raise sqlite3.DatabaseError("it holds other columns")
        with closing(connection.execute("PRAGMA quick_check(1)")) as check:
            if (verdict := check.fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(verdict)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_aside(path: Path) -> Path:
    aside = path.with_name(f"{path.name}.damaged")
    try:
        path.replace(aside)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise _unusable(path, f"it is damaged, and {error.strerror}") from None
    return aside


def _column_names(connection: sqlite3.Connection) -> tuple[str, ...]:
    return tuple(row[1] for row in connection.execute("PRAGMA table_info(measurement)"))


def _outcome(text: str) -> Outcome | None:
    """None for a row that holds no outcome: it is measured again, and replaced."""
    try:
        return msgspec.json.decode(text, type=Outcome)
    except (msgspec.MsgspecError, UnicodeEncodeError, TypeError):
        return None


def _unusable(path: Path, why: str) -> DataError:
    return DataError(f"{path} cannot be used: {why}", remedy="See that it can be read and written.")


def _stored(line: bytes) -> Stored:
    """One line of an export; raises `MsgspecError` for what an export never has."""
    stored = msgspec.json.decode(line, type=Stored)
    if stored.schema != _SCHEMA_NAME:
        raise msgspec.ValidationError(f"its schema is {stored.schema}, not {_SCHEMA_NAME}")
    if not _is_kept(stored.place, stored.outcome):
        raise msgspec.ValidationError("it says nothing about an op")
    return stored


def _is_kept(place: StoreKey, outcome: Outcome) -> bool:
    return place.backend != "drill" and outcome.final and outcome.status != "unknown"


def _columns(place: StoreKey) -> list[str]:
    return [getattr(place, field) for field in StoreKey.__struct_fields__]


def _row(place: StoreKey, outcome: Outcome) -> list[str]:
    return [outcome.key, *_columns(place), _ENCODER.encode(outcome).decode()]
