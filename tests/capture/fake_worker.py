"""A capture child that does what its source tells it: the source is a JSON list of deeds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from scanner.capture.protocol import (
    Begin,
    CandidateInfo,
    Crash,
    Done,
    Failed,
    Graph,
    Job,
    Located,
    Message,
    encode_message,
)
from tests.samples import call, graph


def main(job_file: str, result_file: str) -> None:
    job = msgspec.json.decode(Path(job_file).read_bytes(), type=Job)
    told = json.loads(Path(str(job.source.path)).read_text())
    with Path(result_file).open("ab", buffering=0) as result:

        def send(message: Message) -> None:
            result.write(encode_message(message))

        for deed in told["loading"]:
            do(deed, job, "", send)
        models: dict[str, list[str]] = told["models"]
        send(Located(candidates=tuple(_candidate(entry) for entry in models), notes=("a note",)))
        for entry, deeds in models.items():
            if entry in job.skip:
                continue
            if "before" not in deeds:
                send(Begin(entry=entry))
            for deed in deeds:
                do(deed, job, entry, send)
        if "no done" not in told["loading"]:
            send(Done())
        for deed in told.get("after", []):
            do(deed, job, "", send)


def _candidate(entry: str) -> CandidateInfo:
    return CandidateInfo(name=f"{entry}()", entry=entry, how="class")


def do(deed: str, job: Job, entry: str, send: Any) -> None:
    """One deed; deeds that are no verb say something about the whole run."""
    match deed:
        case "graph":
            for profile in job.profiles:
                made = graph(call("aten::mm"), name=entry)
                send(Graph(entry=entry, profile=profile.id, graph=made))
        case "fail":
            send(Failed(entry=entry, stage="capture", message="it raised", remedy="mend it"))
        case "unreadable":
            send(Failed(entry="", stage="locate", message="bad syntax", unreadable=True))
            sys.exit(0)
        case "bug":
            send(Crash(traceback="Traceback: oops"))
        case "segfault":
            print("last words", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(7)
        case "leave":
            os._exit(0)
        case "hang":
            time.sleep(600)
        case "half a line":
            append(encode_message(Begin(entry="never"))[:10])
            os._exit(1)
        case "garbage":
            append(b"not json\n")
        case "print":
            print("to stdout", flush=True)
            print("to stderr", file=sys.stderr, flush=True)
        case "read stdin":
            print(repr(sys.stdin.read()), flush=True)
        case "shout":
            sys.stdout.write("x" * 3_000_000)
            sys.stderr.write("y" * 3_000_000)
        case "slow":
            time.sleep(0.4)
        case "where":
            print(Path.cwd(), os.environ.get("MARK"), flush=True)
        case "orphan":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            print(child.pid, flush=True)


def append(raw: bytes) -> None:
    with Path(sys.argv[2]).open("ab") as result:
        result.write(raw)


if __name__ == "__main__":
    main(*sys.argv[1:])
