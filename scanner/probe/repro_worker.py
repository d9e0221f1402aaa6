"""Writes the scripts of failures: `python -m scanner.probe.repro_worker JOBS FOLDER`.

A process of its own, since building the arguments of a configuration takes torch, and its reference
may take more memory than there is. Each job ends in one file of FOLDER: NAME.py, or NAME.txt with
why there is no script.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from scanner.probe.outcome import CaseResult
from scanner.records import OpCall

__all__ = ["Job", "main"]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One script to write."""

    name: str
    device: str
    call: OpCall
    result: CaseResult


def main(arguments: list[str]) -> int:
    """Write what the lines of JOBS ask for."""
    jobs, folder = map(Path, arguments)
    decoder = msgspec.json.Decoder(Job)
    with jobs.open("rb") as lines:
        for line in lines:
            _write(decoder.decode(line), folder)
    return 0


def _write(job: Job, folder: Path) -> None:
    from scanner.probe.rebuild import Unbuildable
    from scanner.probe.repro import repro_script

    try:
        name, text = f"{job.name}.py", repro_script(job.call, job.result, job.device)
    except (Unbuildable, LookupError) as reason:
        name, text = f"{job.name}.txt", str(reason)
    except Exception as error:  # one that cannot be written must not cost the others
        name, text = f"{job.name}.txt", f"{type(error).__name__}: {error}"
    # Whole or not at all: this process may end while it writes.
    draft = folder / f"{name}.part"
    draft.write_text(text, encoding="utf-8")
    draft.replace(folder / name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
