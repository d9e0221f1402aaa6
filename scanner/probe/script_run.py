"""Runs one script to its end, whatever that is, and says whether it shows what it should."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scanner.probe.issue import Check, Failure

__all__ = ["Ended", "check_script", "run_for"]

_PRINTED = 4096
_AT_FAULT = 1
_VERDICTS = (
    "the device is right",
    "THE DEVICE IS WRONG",
    "nothing can be told",
    "THE DEVICE RAISES",
)
"""What a script that comes to its end prints last."""
_RAISED = "the device raises "
_QUOTED = 160
_TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a process ended."""

    returncode: int | None
    """As `subprocess` has it; None when it was ended for taking too long."""
    printed: str
    """The last of its stdout and stderr."""


def run_for(command: Sequence[str], environ: Mapping[str, str], limit_s: float) -> Ended:
    """Run a command in an empty directory; it and what it has started end with the limit."""
    with tempfile.TemporaryDirectory(prefix="opscan-repro-") as name:
        scratch = Path(name)
        with (scratch / "printed").open("w+b") as printed:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                cwd=scratch,
                env=dict(environ),
                start_new_session=True,
            )
            returncode: int | None = None
            try:
                returncode = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                pass
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            printed.seek(max(0, printed.seek(0, os.SEEK_END) - _PRINTED))
            text = printed.read().decode("utf-8", "replace")
        return Ended(returncode=returncode, printed=text.strip())


def check_script(
    script: Path, failure: Failure, environ: Mapping[str, str], limit_s: float
) -> Check:
    """Whether the script fails as the configuration did, on the device that it names itself."""
    ended = run_for((sys.executable, str(script)), environ, limit_s)
    return Check(
        status="confirmed" if _confirmed(ended, failure) else "not reproduced",
        message=_happened(ended.returncode, ended.printed, limit_s),
        printed=ended.printed,
    )


def _confirmed(ended: Ended, failure: Failure) -> bool:
    told = ended.printed.endswith(_VERDICTS)
    at_fault = told and ended.returncode == _AT_FAULT
    if failure.result.status != "crash":
        return at_fault
    kind = failure.death.kind if failure.death is not None else "device"
    if kind == "device":  # one that is lost may do no more than raise
        return at_fault or _died(ended)
    return ended.returncode is None if kind == "hang" else _died(ended)


def _died(ended: Ended) -> bool:
    """Whether the op ended the process: nobody else, and not the script itself."""
    if ended.returncode is None or -ended.returncode in {signal.SIGKILL, signal.SIGTERM}:
        return False
    return not ended.printed.endswith(_VERDICTS) and _TRACEBACK not in ended.printed


def _happened(code: int | None, printed: str, limit_s: float) -> str:
    if code is None:
        return f"the script did not end within {limit_s:g} s"
    if code < 0:
        return f"the script's process was killed by {_signal(-code)}"
    lines = printed.splitlines() or ["nothing was printed"]
    # What a device raises says more than that it is wrong.
    said = next((line for line in lines[-2:] if line.startswith(_RAISED)), lines[-1])
    return f"the script exited with {code}: {textwrap.shorten(said, _QUOTED, placeholder='…')}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
