"""Prepares a release in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping

import msgspec

from scanner.sim.prepare.errors import PrepareError
from scanner.sim.prepare.news import Failed, News, Prepared

__all__ = ["prepare_apart"]

_COMMAND = (sys.executable, "-m", "scanner.sim.prepare.worker")


def prepare_apart(
    release: str,
    environ: Mapping[str, str],
    listen: Callable[[News], object],
    command: tuple[str, ...] = _COMMAND,
) -> Prepared:
    """The prepared release, made if it is not there; `listen` hears all that is done.

    Raises `PrepareError`. The process ends with the caller, also when that is interrupted; what
    it had finished is kept.
    """
    with tempfile.TemporaryFile() as said, subprocess.Popen(
        [*command, release], stdout=subprocess.PIPE, stderr=said, env=dict(environ)
    ) as child:  # fmt: skip
        try:
            news = _followed(child, listen)
        except BaseException:
            child.kill()
            raise
        if isinstance(news, Prepared):
            return news
        if isinstance(news, Failed):
            raise PrepareError(news.message, remedy=news.remedy)
        said.seek(0)
        last = (said.read().decode(errors="replace").strip().splitlines() or ["no message"])[-1]
    raise PrepareError(
        f"torch {release} could not be prepared: the process ended ({last})",
        remedy="Run the command again; steps that were finished are kept.",
    )


def _followed(child: subprocess.Popen[bytes], listen: Callable[[News], object]) -> News | None:
    decoder = msgspec.json.Decoder(News)
    last: News | None = None
    assert child.stdout is not None
    for line in child.stdout:
        last = decoder.decode(line)
        listen(last)
    return last
