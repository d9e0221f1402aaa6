"""A step captured in this process, without a child."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scanner.capture.frames import Frames
from scanner.capture.ladder import Climb, climb
from scanner.capture.lowering import DROPOUT, HOLDABLE, SAFE_SOFTMAX
from scanner.capture.protocol import Failed, Graph, Message, Profile
from scanner.locate.interface import Candidate, Found, Subject
from scanner.records import OpGraph

ROOT = Path(__file__).parent.parent.parent


NEWEST = HOLDABLE | {DROPOUT, SAFE_SOFTMAX}
"""What the newest releases keep whole."""


def profile(holds: frozenset[str] = NEWEST) -> Profile:
    return Profile(id="p", holds=tuple(sorted(holds)), release="2.13.0")


def climbed(
    build: Callable[[], Subject], *, mode: str = "auto", holds: frozenset[str] = NEWEST
) -> list[Message]:
    candidate = Candidate(name="m", entry="m", how="hook", build=build)
    job = Climb(
        find=lambda _rung: Found(candidates=(candidate,)),
        source="m.py",
        mode=mode,
        profiles=(profile(holds),),
        skip=frozenset(),
        frames=Frames(ROOT),
    )
    return list(climb(job))


@pytest.fixture
def capture() -> Callable[..., OpGraph]:
    def run(build: Callable[[], Subject], **options: Any) -> OpGraph:
        messages = climbed(build, **options)
        graphs = [message for message in messages if isinstance(message, Graph)]
        assert graphs, [message for message in messages if isinstance(message, Failed)]
        return graphs[0].graph

    return run


def ops(graph: OpGraph, *phases: str) -> list[str]:
    """Overloads in order of execution, bookkeeping views of autograd left out."""
    calls = (graph.ops[step.op] for step in graph.steps)
    return [
        call.op
        for call in calls
        if call.op != "aten::detach" and (not phases or call.phase in phases)
    ]
