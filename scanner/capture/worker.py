"""The capture child: loads one source, captures its models, and writes messages as they come.

Run as `python -m scanner.capture.worker JOB RESULT`; see `protocol.py`. It runs the user's code, so
nothing here may rely on it to return, and everything it prints goes to the streams it was given.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from scanner.capture.protocol import (
    Crash,
    Done,
    Failed,
    Graph,
    Job,
    Message,
    encode_message,
)
from scanner.errors import OpscanError, SourceError, UsageError
from scanner.locate.guard import Guard, protect
from scanner.locate.interface import LocateOptions, Source

if TYPE_CHECKING:
    from scanner.capture.frames import Frames
    from scanner.capture.loader import Loader

__all__ = ["loader_of", "main", "messages", "protected"]


def main(job_file: str, result_file: str) -> int:
    """Works through the job in `job_file`; 0 also when models failed, since that is told."""
    job = msgspec.json.decode(Path(job_file).read_bytes(), type=Job)
    with Path(result_file).open("ab", buffering=0) as result:
        try:
            for message in messages(job):
                result.write(encode_message(message))
        except Exception:  # a bug of ours: the parent shows it
            result.write(encode_message(Crash(traceback=traceback.format_exc())))
            return 1
        result.write(encode_message(Done()))
    return 0


def messages(job: Job) -> Iterator[Message]:
    """Everything that happens, in order, the final `Done` excepted."""
    guard = protect(protected(job))
    try:
        for message in _climb(job, guard):
            yield _with_refusals(message, guard)
    except OpscanError as error:
        yield Failed(
            entry="",
            stage="locate",
            message=error.message,
            remedy=error.remedy,
            unreadable=isinstance(error, UsageError | SourceError),
        )


def protected(job: Job) -> list[Path]:
    """Directories that the user's file must not write to."""
    path = job.source.path
    return [Path(job.cwd), *([Path(path).parent] if path else [])]


def loader_of(job: Job) -> tuple[Loader, Frames]:
    """What loads the job's source, and what tells which lines are the user's. Imports torch."""
    from scanner.capture.frames import Frames
    from scanner.capture.loader import Loader

    frames = Frames(Path(job.cwd), own=tuple(protected(job)[1:]))
    return Loader(_source(job), _options(job), Path(job.cwd), frames), frames


def _climb(job: Job, guard: Guard) -> Iterator[Message]:
    # torch comes in here, after the guard: importing it takes most of this process's time.
    from scanner.capture.ladder import Climb, climb

    guard.cover_torch()
    loader, frames = loader_of(job)
    yield from climb(
        Climb(
            find=loader.find,
            source=_shown(job),
            mode=job.mode,
            profiles=job.profiles,
            skip=frozenset(job.skip),
            frames=frames,
        )
    )


def _shown(job: Job) -> str:
    """The source as reports name it: relative to the working directory where it lies below."""
    path = job.source.path
    if path and Path(path).is_relative_to(job.cwd):
        return Path(path).relative_to(job.cwd).as_posix()
    return job.source.argument.rpartition(":")[0] if job.source.name else job.source.argument


def _source(job: Job) -> Source:
    told = job.source
    return Source(
        argument=told.argument,
        path=Path(told.path) if told.path else None,
        module=told.module,
        name=told.name,
    )


def _options(job: Job) -> LocateOptions:
    return LocateOptions(inputs=job.inputs, entry=job.entry, mode=job.mode)


def _with_refusals(message: Message, guard: Guard) -> Message:
    """Writes that were refused are part of how the graph came to be."""
    if not isinstance(message, Graph) or not guard.refused:
        return message
    capture = message.graph.capture
    capture = msgspec.structs.replace(capture, notes=(*capture.notes, *guard.notes()))
    return msgspec.structs.replace(
        message, graph=msgspec.structs.replace(message.graph, capture=capture)
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
