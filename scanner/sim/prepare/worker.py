"""`python -m scanner.sim.prepare.worker RELEASE`: prepares a release, one JSON message a line.

A process of its own, because running a release's initialisers loads the emulator.
"""

from __future__ import annotations

import sys

import msgspec

from scanner.errors import OpscanError
from scanner.sim.prepare.news import Failed, News, Prepared, Progress, Step
from scanner.sim.prepare.release import prepare

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Writes what is done to stdout; 1 when it failed."""
    release = arguments[0]
    try:
        made = prepare(
            release,
            progress=lambda text: _say(Step(text=text)),
            downloading=lambda done, total: _say(Progress(done=done, total=total)),
        )
    except OpscanError as error:
        _say(Failed(message=error.message, remedy=error.remedy))
        return 1
    manifest = made.manifest
    _say(Prepared(
        release=made.release, folder=str(made.folder), nbytes=made.nbytes(),
        wheel=manifest.wheel, sha256=manifest.wheel_sha256,
    ))  # fmt: skip
    return 0


def _say(news: News) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(news) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
