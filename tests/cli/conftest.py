from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scanner import pipeline
from scanner.capture.client import Captured, Launch, NotCaptured, SourceCapture
from scanner.capture.protocol import Job
from scanner.cli.main import run
from scanner.records import Capture, OpCall, OpGraph
from tests.samples import call, graph

CODE = "import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n"


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Invoke = Callable[..., Result]


@pytest.fixture
def invoke(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Invoke:
    """Run a command line in an empty directory, with no settings from outside."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM"):
        monkeypatch.delenv(name, raising=False)

    def run_it(*arguments: str) -> Result:
        code = run(arguments)
        said = capsys.readouterr()
        return Result(code, said.out, said.err)

    return run_it


class Child:
    """Stands in for the capture child: what each source yields, and what it was asked."""

    def __init__(self) -> None:
        self.graphs: dict[str, OpGraph] = {}
        self.failures: dict[str, NotCaptured] = {}
        self.jobs: list[Job] = []
        self.launches: list[Launch] = []

    def yields(self, argument: str, *ops: OpCall, capture: Capture | None = None) -> None:
        """The source holds one model that runs these ops."""
        self.graphs[argument] = graph(*ops, source=argument, capture=capture)

    def fails(self, argument: str, message: str, **other: Any) -> None:
        """The source, or with `entry` its model, cannot be captured."""
        given = {"name": argument, "entry": "", "message": message} | other
        self.failures[argument] = NotCaptured(**given)

    def capture(self, job: Job, launch: Launch) -> SourceCapture:
        self.jobs.append(job)
        self.launches.append(launch)
        argument = job.source.argument
        if argument in self.failures:
            return SourceCapture(argument=argument, models=(self.failures[argument],))
        found = self.graphs.get(argument) or graph(call("aten::mm"), source=argument)
        graphs = {profile.id: found for profile in job.profiles}
        model = Captured(name=found.name, entry=found.entry, graphs=graphs)
        return SourceCapture(
            argument=argument, models=(model,), stdout="hello\n", stderr="a warning\n"
        )


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Child:
    """A fake child, and files clean.py, broken.py and other.py to give it."""
    for name in ("clean.py", "broken.py", "other.py"):
        (tmp_path / name).write_text(CODE)
    fake = Child()
    monkeypatch.setattr(pipeline, "capture_source", fake.capture)
    return fake
