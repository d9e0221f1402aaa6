"""The executor's end of a worker process: started when needed, replaced when lost."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import msgspec

from .protocol import Description, Done, Refused, RegionInfo, Reply, Request, Setup, receive, send

__all__ = ["Client", "WorkerLostError"]

_GRACE = 180.0
"""Seconds beyond a launch's own budget: compiling, and the worker's start, on a busy machine."""
_SLOWNESS = 4.0
"""Wall time that a second of processor time may take."""


class WorkerLostError(Exception):
    """The worker died, or did not answer in time."""


class Client:
    """One worker process."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._decoder: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(
            Description | Refused | Done
        )

    def post(self, request: Request, seconds: float = 0.0) -> None:
        """Sends a request whose answer `collect` will fetch; `seconds` is its own budget."""
        if self._process is not None and self._process.poll() is not None:
            self.stop()
        channel = self._channel or self._start()
        channel.settimeout(_SLOWNESS * seconds + _GRACE)
        try:
            send(channel, request)
        except OSError as error:
            raise self._lost() from error

    def collect(self) -> Reply:
        """The answer to the last request.

        Raises WorkerLostError, after which the next request starts a new worker.
        """
        if self._channel is None:
            raise WorkerLostError("the shader worker did not start")
        try:
            return self._decoder.decode(receive(self._channel))
        except TimeoutError as error:
            self.stop()
            raise WorkerLostError("the shader worker did not answer in time") from error
        except (EOFError, OSError) as error:
            raise self._lost() from error

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        descriptors = [theirs.fileno(), *(r.descriptor for r in self._setup.regions)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "scanner.sim.shaders.worker", str(theirs.fileno())],
            pass_fds=descriptors, stdin=subprocess.DEVNULL,
            cwd=Path(__file__).parents[3],
        )  # fmt: skip
        theirs.close()
        self._channel = ours
        send(ours, self._setup)
        return ours

    def _lost(self) -> WorkerLostError:
        process = self._process
        code = None
        if process is not None:
            try:
                code = process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
        self.stop()
        if code is not None and code < 0:
            return WorkerLostError(f"the shader killed its worker ({signal.Signals(-code).name})")
        return WorkerLostError(f"the shader worker ended with status {code}")

    def stop(self) -> None:
        """Ends the worker, if there is one."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def region_info(descriptor: int, address: int, size: int) -> RegionInfo:
    """A region as the worker is told of it."""
    return RegionInfo(descriptor, address, size)
