"""The child that runs whole steps of the user's models on a device.

Run as `python -m scanner.probe.whole_worker JOB RESULT`; see `whole_protocol.py`. The file is
loaded as for capturing, in the world of real tensors, and the device may end the process.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from scanner.capture.protocol import Begin, Crash, Done
from scanner.capture.worker import loader_of, protected
from scanner.errors import OpscanError
from scanner.locate.guard import protect
from scanner.probe.whole_protocol import (
    Doing,
    Point,
    Refused,
    Swept,
    Timing,
    Walked,
    WholeJob,
    WholeMessage,
    encode_whole,
)
from scanner.records import BatchPoint, BatchSweep, Divergence

__all__ = ["main"]

_SHARE = 0.5
"""Share of this machine's memory that the copies of one model's parameters may take."""
_COPIES = 4
"""The step's own, the one in double precision (two), and the device's."""
_TRAINED = 4
"""Parameters, gradients, and two moments of an optimizer."""


def main(job_file: str, result_file: str) -> int:
    """Works through the job in `job_file`; 0 also when models could not be run."""
    job = msgspec.json.decode(Path(job_file).read_bytes(), type=WholeJob)
    with Path(result_file).open("ab", buffering=0) as result:
        try:
            _Child(job, result).run()
        except OpscanError as error:
            result.write(encode_whole(Refused(entry="", reason=error.message)))
        except Exception:  # a bug of ours: the parent shows it
            result.write(encode_whole(Crash(traceback=traceback.format_exc())))
            return 1
        result.write(encode_whole(Done()))
    return 0


class _Child:
    def __init__(self, job: WholeJob, result: IO[bytes]) -> None:
        self._job = job
        self._result = result

    def _say(self, message: WholeMessage) -> None:
        self._result.write(encode_whole(message))

    def run(self) -> None:
        guard = protect(protected(self._job.job))
        import torch

        from scanner.backends.open import open_device

        guard.cover_torch()
        torch.set_warn_always(True)
        # Before the user's file is loaded, which happens in a world where there is only MPS.
        device = open_device(self._job.device)
        unusable = device.check()
        if unusable is not None:
            self._say(Refused(entry="", reason=unusable.reason))
            return
        self._load = loader_of(self._job.job)
        sizes = self._sizes()
        for entry in self._job.entries:
            self._say(Begin(entry=entry))
            too_large = _too_large(sizes.get(entry, 0))
            if too_large:
                self._say(Refused(entry=entry, reason=too_large))
                continue
            for message in self._measured(entry, device):
                self._say(message)

    def _sizes(self) -> dict[str, int]:
        """Entry → bytes of its parameters, where it can be built without memory for them."""
        from scanner.capture.ladder import nbytes_of
        from scanner.capture.world import world

        sizes = {}
        with world("meta"):
            try:
                found = self._load[0].find("meta")
            except OpscanError:
                return {}
            for candidate in found.candidates:
                if candidate.entry in self._job.entries:
                    try:
                        sizes[candidate.entry] = nbytes_of(candidate.build())
                    except Exception:
                        continue  # it is built with real values then, or fails there
        return sizes

    def _measured(self, entry: str, device: Any) -> Iterator[WholeMessage]:
        if self._job.steps:
            yield self._walked(entry, device)
        if self._job.batches:
            yield from self._swept(entry, device)

    def _walked(self, entry: str, device: Any) -> WholeMessage:
        from scanner.capture.world import world
        from scanner.probe.follower import OwnFault
        from scanner.probe.steps import accumulate

        job = self._job
        with world("real") as placement:
            try:
                subject, where = self._built(entry, placement)
                result = accumulate(subject, where, device, job.device, job.steps, self._doing)
            except OwnFault as fault:
                raise RuntimeError("following the step failed") from fault
            except Exception as error:  # the user's code may raise anything
                return Refused(entry=entry, reason=_told(error))
        return Walked(entry=entry, result=result)

    def _swept(self, entry: str, device: Any) -> Iterator[WholeMessage]:
        from scanner.probe.batch_dim import BatchDim

        asked = self._job.batches
        sweep = BatchSweep(device=self._job.device, asked=asked)
        dim = self._batch_dim(entry)
        if not isinstance(dim, BatchDim):
            reason = f"the batch dimension is unknown: {dim}"
            yield Swept(entry=entry, result=msgspec.structs.replace(sweep, incomplete=reason))
            return
        left_out = []
        for batch in asked:
            yield Timing(entry=entry, batch=batch)
            outcome = self._timed(entry, device, dim, batch)
            if isinstance(outcome, BatchPoint):
                yield Point(entry=entry, point=outcome)
            elif outcome.memory:
                sweep = msgspec.structs.replace(sweep, ended=f"batch {batch}: {outcome.reason}")
                break
            else:
                left_out.append(f"batch {batch}: {outcome.reason}")
        note = f"the batch is dimension {dim.inputs} of the inputs, {dim.size} samples in the file"
        yield Swept(
            entry=entry,
            result=msgspec.structs.replace(sweep, incomplete="; ".join(left_out), notes=(note,)),
        )

    def _batch_dim(self, entry: str) -> Any:
        from scanner.capture.world import world
        from scanner.probe.batch_dim import find_batch_dim

        with world("real") as placement:
            try:
                subject, where = self._built(entry, placement)
                with where.dispatching():
                    return find_batch_dim(subject)
            except Exception as error:
                return _told(error)

    def _timed(self, entry: str, device: Any, dim: Any, batch: int) -> BatchPoint | _Failed:
        from scanner.capture.world import world
        from scanner.probe.batches import record_tape, time_tape

        try:
            with world("real") as placement:
                subject, where = self._built(entry, placement)
                tape = record_tape(subject, where, dim, batch)
            # Outside of the world, where a device's own account of its memory can be read.
            return time_tape(tape, device, batch, self._doing)
        except Exception as error:  # the user's code, or the device
            return _failed(error)

    def _doing(self, note: Divergence) -> None:
        self._say(Doing(note=note))

    def _built(self, entry: str, placement: Any) -> tuple[Any, Any]:
        """The subject, built from the seed in the ambient world, and how its steps are run."""
        import torch

        from scanner.probe.steps import World

        loader, frames = self._load
        torch.manual_seed(self._job.seed)
        found = loader.find("real")
        candidate = next(each for each in found.candidates if each.entry == entry)
        placement.default, placement.stepping = "target", False
        torch.manual_seed(self._job.seed)
        subject = candidate.build()
        holds = frozenset(name for each in self._job.job.profiles for name in each.holds)
        world = World(
            placement=placement,
            frames=frames,
            mode=self._job.job.mode,
            holds=holds,
            seed=self._job.seed,
        )
        return subject, world


def _too_large(nbytes: int) -> str:
    needed = nbytes * _COPIES * _TRAINED
    allowed = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _SHARE)
    if needed <= allowed:
        return ""
    return (
        f"running it beside the CPU takes about {needed / 2**30:.0f} GiB for its parameters, "
        f"gradients and optimizer, more than the {allowed / 2**30:.0f} GiB that opscan takes here"
    )


class _Failed(NamedTuple):
    """A batch size that could not be timed."""

    reason: str
    memory: bool
    """Whether for lack of memory, so that larger ones need not be tried."""


def _failed(error: Exception) -> _Failed:
    from scanner.backends.mps_facts import is_out_of_memory
    from scanner.capture.ladder import described

    text = str(error)
    if isinstance(error, MemoryError) or is_out_of_memory(text):
        return _Failed(f"out of memory ({text.splitlines()[0][:200] if text else ''})", True)
    return _Failed(described(error), False)


def _told(error: BaseException) -> str:
    from scanner.capture.ladder import described

    return f"with real values, {described(error)}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
