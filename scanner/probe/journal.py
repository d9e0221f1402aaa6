"""The results of a scan as they come, so that one that is cut short repeats nothing.

A journal is a file of JSON lines. A `session` line says which scan it belongs to; a line for an
outcome is on the disk before anyone sees that outcome. A line that a power loss has torn is
dropped. `begin` lines name what was in flight: when the machine itself went down twice over the
same configuration, a third try would take it down again.
"""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

import msgspec

from scanner.errors import DataError, UsageError
from scanner.probe.protocol import Outcome

__all__ = ["Journal", "JournalInUseError", "boot_id"]

_SCHEMA = "opscan.journal/1"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MOST_CRASHES = 2
_ENCODER = msgspec.json.Encoder()


class JournalInUseError(UsageError):
    """Another scan is writing the journal."""


class _Session(msgspec.Struct, frozen=True, kw_only=True, tag="session"):
    schema: str = _SCHEMA
    scope: str
    boot: str


class _Begun(msgspec.Struct, frozen=True, kw_only=True, tag="begin"):
    key: str


class _Done(msgspec.Struct, frozen=True, kw_only=True, tag="outcome"):
    outcome: Outcome


_Line = _Session | _Begun | _Done
_DECODER = msgspec.json.Decoder(_Line)


class Journal:
    """The journal at `path`, open for this scan alone. Use as a context manager.

    `scope` identifies device, framework and options: a journal of another scope is replaced.
    Raises `JournalInUseError` when another scan is writing it, `DataError` when it cannot be
    written.
    """

    def __init__(self, path: Path, scope: str, *, boot: str = "") -> None:
        self.path = path
        self.outcomes: dict[str, Outcome] = {}
        """What earlier sessions finished, by key."""
        self.fatal: frozenset[str] = frozenset()
        """What was in flight each time when the machine went down, twice or more."""
        self.replaced = False
        """Whether there had been a journal of another scope."""
        self.dropped = 0
        """Lines that could not be read."""
        self._file = _open(path)
        self._pending = b""
        self._read(scope, boot)
        self._begin_session(scope, boot)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _begin_session(self, scope: str, boot: str) -> None:
        """Note that a scan starts here."""
        self._write(_Session(scope=scope, boot=boot))
        self.commit()

    def begun(self, key: str) -> None:
        """Note that a configuration is in flight; on the disk at the next `commit`."""
        self._write(_Begun(key=key))

    def add(self, outcome: Outcome) -> None:
        """Note an outcome; on the disk at the next `commit`."""
        self._write(_Done(outcome=outcome))

    def commit(self) -> None:
        """Bring everything noted onto the disk; what cannot be written is forgotten.

        Raises `DataError`.
        """
        if not self._pending:
            return
        pending, self._pending = self._pending, b""
        try:
            while pending:
                pending = pending[self._file.write(pending) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise DataError(
                f"{self.path} cannot be written: {error.strerror}", remedy="Make room on the disk."
            ) from None

    def close(self) -> None:
        """Commit and let go of the file."""
        try:
            self.commit()
        finally:
            self._file.close()

    def _write(self, line: msgspec.Struct) -> None:
        self._pending += _ENCODER.encode(line) + b"\n"

    def _read(self, scope: str, boot: str) -> None:
        self._file.seek(0)
        whole, _, torn = self._file.read().rpartition(b"\n")
        self.dropped += bool(torn)
        lines = [line for text in whole.splitlines() if (line := self._decode(text)) is not None]
        first = next(iter(lines), None)
        if not isinstance(first, _Session) or first.scope != scope or first.schema != _SCHEMA:
            self.replaced = bool(lines)
            lines, whole = [], b""
        self._file.truncate(len(whole) + 1 if whole else 0)
        self._file.seek(0, os.SEEK_END)
        latest = {line.outcome.key: line.outcome for line in lines if isinstance(line, _Done)}
        self.outcomes = {key: outcome for key, outcome in latest.items() if outcome.final}
        self.fatal = _fatal([*lines, _Session(scope=scope, boot=boot)])

    def _decode(self, text: bytes) -> _Line | None:
        try:
            line: _Line = _DECODER.decode(text)
            return line
        except (msgspec.MsgspecError, UnicodeDecodeError):
            self.dropped += 1
            return None


def boot_id(path: Path = _BOOT_ID) -> str:
    """Changes when the machine restarts; empty where the system does not tell."""
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        from scanner.backends.system import sysctl

        return sysctl("kern.bootsessionuuid")


def _open(path: Path) -> IO[bytes]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without a buffer: nothing that could not be written is tried again when it is closed.
        file = path.open("a+b", buffering=0)
    except OSError as error:
        raise DataError(
            f"{path} cannot be written: {error.strerror}", remedy="Name another journal."
        ) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise JournalInUseError(
            f"another scan is writing {path}", remedy="Wait for it, or name another journal."
        ) from None
    return file


def _fatal(lines: Iterable[_Line]) -> frozenset[str]:
    """What was in flight at two restarts of the machine or more."""
    crashes: Counter[str] = Counter()
    in_flight: set[str] = set()
    boot = ""
    for line in lines:
        if isinstance(line, _Begun):
            in_flight.add(line.key)
        elif isinstance(line, _Done):
            in_flight.discard(line.outcome.key)
        else:
            if boot and line.boot and boot != line.boot:
                crashes.update(in_flight)
            in_flight.clear()
            boot = line.boot
    return frozenset(key for key, times in crashes.items() if times >= _MOST_CRASHES)
