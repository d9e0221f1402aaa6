"""The parent side of capturing, against a child that crashes, hangs and lies on demand."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from scanner.capture.client import Captured, Launch, NotCaptured, SourceCapture, capture_source
from scanner.capture.protocol import Job, JobSource, Profile

WORKER = (sys.executable, "-m", "tests.capture.fake_worker")
ROOT = Path(__file__).parents[2]


class Runner:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.launch = Launch(
            timeout_s=30.0, command=WORKER, environ={**os.environ, "PYTHONPATH": str(ROOT)}
        )

    def __call__(
        self,
        models: dict[str, list[str]] | None = None,
        loading: list[str] | None = None,
        after: list[str] | None = None,
        **launch: Any,
    ) -> SourceCapture:
        script = self.folder / "source.json"
        deeds = {"models": models or {}, "loading": loading or [], "after": after or []}
        script.write_text(json.dumps(deeds))
        job = Job(
            source=JobSource(argument="source.json", path=str(script)),
            cwd=str(self.folder),
            profiles=(Profile(id="p", holds=(), release="2.9.1"),),
        )
        given = {
            "timeout_s": self.launch.timeout_s,
            "command": self.launch.command,
            "environ": self.launch.environ,
        } | launch
        return capture_source(job, Launch(**given))


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def outcomes(found: SourceCapture) -> dict[str, str]:
    """Entry → `captured`, or the message."""
    return {
        model.entry: model.message if isinstance(model, NotCaptured) else "captured"
        for model in found.models
    }


def only_failure(found: SourceCapture) -> NotCaptured:
    (failure,) = (model for model in found.models if isinstance(model, NotCaptured))
    return failure


def test_every_model_is_captured_in_order(run: Runner) -> None:
    found = run({"B": ["graph"], "A": ["graph"]})
    assert outcomes(found) == {"B": "captured", "A": "captured"}
    assert list(outcomes(found)) == ["B", "A"]
    assert found.notes == ("a note",)
    first = found.models[0]
    assert isinstance(first, Captured)
    assert list(first.graphs) == ["p"]


@pytest.mark.parametrize(
    ("deed", "message"),
    [
        ("segfault", "the process was killed by SIGSEGV while the step was captured"),
        ("killed", "the process was killed by SIGKILL (perhaps for lack of memory) while the step"),
        ("exit", "the process exited with code 7 while the step was captured"),
        ("leave", "the process exited with code 0 while the step was captured"),
        ("half a line", "the process exited with code 1 while the step was captured"),
        ("fail", "it raised"),
        ("bug", "opscan failed on it"),
    ],
)
def test_one_model_fails_and_the_others_are_captured(run: Runner, deed: str, message: str) -> None:
    found = run({"A": ["graph"], "B": [deed], "C": ["graph"]})
    assert outcomes(found)["B"].startswith(message)
    assert outcomes(found) | {"B": ""} == {"A": "captured", "B": "", "C": "captured"}
    assert only_failure(found).unreadable is (deed == "bug")
    assert only_failure(found).name == "B()"


def test_a_model_that_hangs_is_given_up_and_the_others_are_captured(run: Runner) -> None:
    found = run({"A": ["graph"], "B": ["hang"], "C": ["graph"]}, timeout_s=1.5)
    assert outcomes(found) == {
        "A": "captured",
        "B": "it takes longer than 1.5 s to capture the step",
        "C": "captured",
    }
    assert "--timeout" in only_failure(found).remedy


def test_several_models_may_take_longer_together_than_the_limit_for_one(run: Runner) -> None:
    found = run({name: ["slow", "graph"] for name in "ABCDEF"}, timeout_s=1.5)
    assert set(outcomes(found).values()) == {"captured"}


def test_what_the_child_said_before_it_died_is_quoted(run: Runner) -> None:
    assert only_failure(run({"A": ["segfault"]})).said == ("last words",)


@pytest.mark.parametrize(
    ("deed", "message"),
    [
        ("segfault", "the process was killed by SIGSEGV while the file was loaded"),
        ("exit", "the process exited with code 7 while the file was loaded"),
        ("leave", "the process exited with code 0 while the file was loaded"),
    ],
)
def test_a_file_that_ends_the_process_while_it_is_loaded(
    run: Runner, deed: str, message: str
) -> None:
    found = run({"A": ["graph"]}, loading=[deed])
    assert outcomes(found) == {"": message}
    assert not only_failure(found).unreadable
    assert "__main__" in only_failure(found).remedy


def test_a_file_that_never_finishes_loading(run: Runner) -> None:
    found = run({"A": ["graph"]}, loading=["hang"], timeout_s=1.5)
    assert outcomes(found) == {"": "it takes longer than 1.5 s to load the file"}


def test_what_the_user_must_mend_is_marked(run: Runner) -> None:
    failure = only_failure(run(loading=["unreadable"]))
    assert (failure.name, failure.message, failure.unreadable) == (
        "source.json",
        "bad syntax",
        True,
    )


def test_a_bug_while_loading_ends_the_source(run: Runner) -> None:
    failure = only_failure(run(loading=["bug", "leave"]))
    assert failure.traceback == "Traceback: oops"
    assert failure.unreadable


def test_a_source_without_models_is_a_failure(run: Runner) -> None:
    failure = only_failure(run({}))
    assert failure.message == "no model was found in it"
    assert failure.unreadable


def test_dying_between_models_blames_the_next_and_goes_on(run: Runner) -> None:
    found = run({"A": ["graph"], "B": ["before", "exit"], "C": ["graph"]})
    # The child never said that it began B, and dies each time it is about to.
    assert outcomes(found)["A"] == "captured"
    assert outcomes(found)["B"].startswith("the process exited with code 7")
    assert outcomes(found)["C"] == "captured"


def test_dying_after_everything_was_captured_loses_nothing(run: Runner) -> None:
    found = run({"A": ["graph"]}, loading=["no done"])
    assert outcomes(found) == {"A": "captured"}


def test_what_happens_after_the_last_message_is_not_waited_for(run: Runner) -> None:
    begun = time.monotonic()
    assert outcomes(run({"A": ["graph"]}, after=["hang"])) == {"A": "captured"}
    assert time.monotonic() - begun < 25  # the limit is 30 s, the hang 600 s


def test_a_line_that_is_no_message_is_a_bug_of_ours(run: Runner) -> None:
    failure = only_failure(run({"A": ["garbage"]}))
    assert "not json" in failure.traceback


def test_output_is_kept_apart_from_results(run: Runner) -> None:
    found = run({"A": ["print", "graph"]}, loading=["print"])
    assert outcomes(found) == {"A": "captured"}
    assert found.stdout == "to stdout\n" * 2
    assert found.stderr == "to stderr\n" * 2


def test_much_output_neither_blocks_nor_fills_memory(run: Runner) -> None:
    found = run({"A": ["shout", "graph", "exit"]})
    assert len(found.stdout) < 100_000
    assert len(found.stderr) < 100_000


def test_reading_stdin_finds_nothing_and_does_not_wait(run: Runner) -> None:
    assert run({"A": ["read stdin", "graph"]}).stdout == "''\n"


def test_the_child_starts_outside_the_users_directory_with_the_given_environment(
    run: Runner, tmp_path: Path
) -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "MARK": "here"}
    where, mark = run({"A": ["where", "graph"]}, environ=environ).stdout.split()
    assert Path(where) != tmp_path
    assert mark == "here"


def test_nothing_that_the_file_started_outlives_the_child(run: Runner) -> None:
    pid = int(run({"A": ["orphan", "graph"]}).stdout)
    deadline = time.monotonic() + 20
    while _alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # An orphan that no one reaps stays as a zombie; it does not run any more.
    status = Path(f"/proc/{pid}/status")
    return not (status.exists() and "State:\tZ" in status.read_text())


def test_stop_ends_the_child_soon_and_blames_nobody(run: Runner) -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    begun = time.monotonic()
    found = run({"A": ["hang"]}, stop=stop)
    assert time.monotonic() - begun < 25
    assert all(isinstance(model, NotCaptured) for model in found.models)
