"""Files examined in parallel, each worker with the rules made ready once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from scanner.source.check import Checker
from scanner.source.read import Examined, Trouble, examine

if TYPE_CHECKING:
    from scanner.records import Target

__all__ = ["Job", "Pending", "examined"]

_CHUNK_BYTES = 200_000
"""About half a second of work: large enough to hide the way to a worker, small enough to share."""
_WORTH_A_PROCESS = 1_500_000
"""Bytes that one process parses in the time that starting others takes, and some more."""


class Pending(NamedTuple):
    """One file that is to be examined."""

    number: int
    """Of the file, among all that are scanned."""
    content: bytes


class Job(NamedTuple):
    """What is the same for all files."""

    targets: tuple[Target, ...]
    processes: int


Done = Iterator[tuple[int, Examined]]


def examined(pending: Sequence[Pending], job: Job) -> Done:
    """Index and outcome of every file, in any order."""
    total = sum(len(each.content) for each in pending)
    if job.processes < 2 or total < _WORTH_A_PROCESS:
        yield from _here(pending, job.targets)
    else:
        yield from _in_processes(pending, job)


def checker_for(targets: tuple[Target, ...]) -> Checker:
    """All rules, for these targets."""
    from scanner.source.rules import rules_for

    return Checker(rules_for(targets), targets)


def _here(pending: Iterable[Pending], targets: tuple[Target, ...]) -> Done:
    checker = checker_for(targets)
    for each in pending:
        yield each.number, examine(each.content, checker)


def _in_processes(pending: Sequence[Pending], job: Job) -> Done:
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    chunks = list(_chunks(pending))
    lost: list[Pending] = []
    # spawn: the same on every system, and no copy of the parent's threads and locks.
    with ProcessPoolExecutor(
        min(job.processes, len(chunks)), get_context("spawn"), _start, (job.targets,)
    ) as pool:
        futures = {pool.submit(_examine_chunk, chunk): chunk for chunk in chunks}
        for future in as_completed(futures):
            try:
                yield from future.result()
            except BrokenProcessPool:
                lost += futures[future]
    yield from _one_by_one(lost, job)


def _one_by_one(lost: Sequence[Pending], job: Job) -> Done:
    """Files whose worker died: all but the one that kills it are examined after all."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    for each in lost:
        with ProcessPoolExecutor(1, get_context("spawn"), _start, (job.targets,)) as pool:
            try:
                yield from pool.submit(_examine_chunk, [each]).result()
            except BrokenProcessPool:
                yield each.number, Examined(trouble=Trouble("Python's parser died of it"))


def _chunks(pending: Iterable[Pending]) -> Iterator[list[Pending]]:
    chunk: list[Pending] = []
    size = 0
    for each in pending:
        chunk.append(each)
        size += len(each.content)
        if size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


_worker: list[Checker] = []
"""In a worker: its rules."""


def _start(targets: tuple[Target, ...]) -> None:
    import gc

    gc.disable()  # trees have no cycles, and the collector looks at each of their nodes
    _worker.append(checker_for(targets))


def _examine_chunk(chunk: Sequence[Pending]) -> list[tuple[int, Examined]]:
    return [(each.number, examine(each.content, _worker[0])) for each in chunk]
