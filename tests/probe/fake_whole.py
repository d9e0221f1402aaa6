"""A child that runs whole steps as its job tells it: each entry is a deed."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import msgspec

from scanner.capture.protocol import Begin, Crash, Done
from scanner.probe.whole_protocol import (
    Doing,
    Point,
    Refused,
    Timing,
    Walked,
    WholeJob,
    encode_whole,
)
from scanner.records import Accumulated, BatchPoint, Divergence

NOTE = Divergence(op="aten::mm", phase="backward", step=2, kind="crash", message="")
SIGNALS = {"abort": signal.SIGABRT, "killed": signal.SIGKILL}


def main(job_file: str, result_file: str) -> None:
    job = msgspec.json.decode(Path(job_file).read_bytes(), type=WholeJob)
    with Path(result_file).open("ab", buffering=0) as result:
        for entry in job.entries:
            result.write(encode_whole(Begin(entry=entry)))
            for deed in entry.split("+"):
                for message in said(deed, entry):
                    result.write(encode_whole(message))
                if deed in SIGNALS:
                    sys.stderr.write("assertion failed\n")
                    sys.stderr.flush()
                    os.kill(os.getpid(), SIGNALS[deed])
                if deed == "hang":
                    time.sleep(60)
                if deed in ("bug", "unusable"):
                    return
        result.write(encode_whole(Done()))


def said(deed: str, entry: str) -> list[object]:
    point = BatchPoint(batch=8, step_s=1.0, p10_s=1.0, p90_s=1.0, spread=0.0, samples=7)
    return {
        "op": [Doing(note=NOTE)],
        "well": [Walked(entry=entry, result=Accumulated(device="cpu", asked=2, steps=2))],
        "timed": [Timing(entry=entry, batch=8), Point(entry=entry, point=point)],
        "more": [Timing(entry=entry, batch=16)],
        "refused": [Refused(entry=entry, reason="too large")],
        "unusable": [Refused(entry="", reason="no device")],
        "bug": [Crash(traceback="Traceback: KeyError")],
    }.get(deed, [])


if __name__ == "__main__":
    main(*sys.argv[1:])
