"""What was found in files, kept by their content: a file that is as before is not parsed again.

Only a saving of time: whatever is wrong with it, a scan goes on without.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

__all__ = ["Cache", "content_key", "engine_key"]

T = TypeVar("T")
_VERSION = 2
_SCHEMA = "CREATE TABLE IF NOT EXISTS found (key BLOB PRIMARY KEY, findings BLOB) WITHOUT ROWID"
_SEAL_BYTES = 8
"""Before each row's findings: SQLite does not see a byte that has changed in them."""
_CHUNK = 500
"""Keys in one question; SQLite allows some thousands."""
_LIMIT = 200_000
"""Files; beyond, all are forgotten. Those of a past version or setting are never asked for."""


def engine_key(folders: Iterable[Path], facts: Sequence[str]) -> bytes:
    """What findings depend on beside a file's content.

    The state of opscan's own files stands for its version, since an editable install has but one.
    """
    state = blake2b(digest_size=32)
    for folder in folders:
        for path in sorted((*folder.rglob("*.py"), *folder.rglob("*.tsv"))):
            stat = path.stat()
            state.update(f"{path.name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    state.update("\n".join(facts).encode())
    return state.digest()


def content_key(content: bytes, engine: bytes) -> bytes:
    """The key of a file's content, for one state of the engine."""
    return blake2b(content, digest_size=20, key=engine).digest()


class Cache:
    """Findings by key, as bytes; None for a path keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.notice = ""
        """What the user should be told, once."""

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """What is kept, by key."""
        wanted = list(keys)
        return self._do(lambda connection: _select(connection, wanted)) or {}

    def put(self, found: Mapping[bytes, bytes]) -> None:
        """Keep findings by key."""
        if found:
            self._do(lambda connection: _insert(connection, found))

    def _do(self, action: Callable[[sqlite3.Connection], T]) -> T | None:
        """None where there is no cache, or none that can be used."""
        if self._path is None:
            return None
        try:
            with closing(_connect(self._path)) as connection:
                return action(connection)
        except (sqlite3.OperationalError, OSError):  # busy in another process, or not writable
            self._path = None
        except sqlite3.DatabaseError as error:
            self.notice = f"{self._path} was damaged ({error}); it starts anew"
            with suppress(OSError):
                self._path.unlink()
        return None


def _select(connection: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for start in range(0, len(keys), _CHUNK):
        chunk = keys[start : start + _CHUNK]
        marks = ",".join("?" * len(chunk))
        rows = connection.execute(f"SELECT key, findings FROM found WHERE key IN ({marks})", chunk)
        found.update((key, _opened(key, kept)) for key, kept in rows)
    return found


def _insert(connection: sqlite3.Connection, found: Mapping[bytes, bytes]) -> None:
    with connection:
        (rows,) = connection.execute("SELECT count(*) FROM found").fetchone()
        if rows > _LIMIT:
            connection.execute("DELETE FROM found")
        sealed = ((key, _seal(key, data) + data) for key, data in found.items())
        connection.executemany("INSERT OR REPLACE INTO found VALUES (?, ?)", sealed)


def _seal(key: bytes, data: bytes) -> bytes:
    return blake2b(data, digest_size=_SEAL_BYTES, key=key).digest()


def _opened(key: bytes, kept: object) -> bytes:
    if isinstance(kept, bytes):
        seal, data = kept[:_SEAL_BYTES], kept[_SEAL_BYTES:]
        if seal == _seal(key, data):
            return data
    raise sqlite3.DatabaseError("a row has changed")


def _connect(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=2)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute("PRAGMA synchronous = OFF")
        if version != _VERSION:
            with connection:
                connection.execute("DROP TABLE IF EXISTS found")
                connection.execute(_SCHEMA)
                connection.execute(f"PRAGMA user_version = {_VERSION}")
    except BaseException:
        connection.close()
        raise
    return connection
