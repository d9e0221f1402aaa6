"""One op of a release that only pretends: records, text and what cannot be asked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from scanner.cli.sim_text import answer_text
from scanner.errors import UsageError
from scanner.probe.protocol import Outcome
from scanner.probe.runner import Ran
from scanner.records import OpCall, Target
from scanner.sim import trace
from scanner.sim.call import Call
from scanner.sim.study import ask, op_runner
from scanner.sim.study.interface import OpAnswer
from scanner.sim.study.op_runner import OpRunner
from tests.backends.fake_release import FakeSession, fake_simulator

TARGET = Target(framework="torch", version="2.9.1")


def run(
    monkeypatch: pytest.MonkeyPatch, op: str, session: FakeSession | None = None, **options: Any
) -> Ran:
    device = fake_simulator(session or FakeSession())
    monkeypatch.setattr(op_runner, "open_simulator", lambda _spec: device)
    return OpRunner("metal-sim:2.9.1", options).run(OpCall(op=op, phase="forward", inputs=()))


def answer(monkeypatch: pytest.MonkeyPatch, op: str, **options: Any) -> OpAnswer:
    return msgspec.convert(run(monkeypatch, op, **options).detail, OpAnswer)


def test_golden(monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
    """A release whose erfc is the identity."""
    session = FakeSession()
    session.replaced["aten::erfc"] = "aten::clone"
    spec = "float32[0.5,nan,1]"
    found = answer(monkeypatch, "aten::erfc", session=session, args=spec)
    assert answer_text(found) == snapshot(name="text")
    assert msgspec.json.format(msgspec.json.encode(found), indent=2).decode() == snapshot(
        name="json"
    )


def test_names_of_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    found = msgspec.to_builtins(answer(monkeypatch, "aten::exp", args="float32[1,2]"))
    contract = {"op", "torch", "dtype", "outcome", "message", "launches", "graph", "error"}
    assert contract <= set(found)
    assert {"kernel", "grid", "threadgroup"} <= set(found["launches"][0])
    figures = {"max_rel", "cpu_max_rel", "nan_differs", "inf_differs", "worst"}
    assert figures <= set(found["error"])


def test_arguments_are_drawn_over_the_whole_range(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answer(monkeypatch, "aten::mul.Tensor", dtype="float16", seed=3)
    assert found.error is not None
    assert (found.error.elements, found.error.differs) == (1 << 16, 0)
    assert found.args == "drawn over the whole range, seed 3"


def test_values_at_the_ends_of_the_allowed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    session = FakeSession()
    session.astray = {"odd": {"aten::exp": "aten::neg"}}
    found = answer(monkeypatch, "aten::exp", session=session, args="float32[1,2]", ulp="worst")
    differs = {direction: figures.differs for direction, figures in found.ends.items()}
    assert differs == {"up": 0, "down": 0, "odd": 2, "even": 0}
    assert "ulp odd" in answer_text(found)
    assert not answer(monkeypatch, "aten::exp", args="float32[1,2]").ends


@pytest.mark.parametrize(
    ("op", "args", "said"),
    [
        ("aten::mm", "", "cannot be drawn arguments for: the CPU raises"),
        ("aten::unsqueeze", "", "dim \\(int\\) cannot be drawn"),
        ("aten::exp", "2x2,1", "takes no more arguments"),
        ("aten::exp", "2x2,dim=1", "has no dim"),
        ("aten::unsqueeze", "2x2", "dim must be given"),
        ("aten::sum.dim_IntList", "2x2,[0],dim=[1]", "dim is given twice"),
    ],
)
def test_arguments_that_do_not_fit(
    monkeypatch: pytest.MonkeyPatch, op: str, args: str, said: str
) -> None:
    detail = run(monkeypatch, op, args=args).detail
    assert detail["remedy"]
    outcome = Outcome(key="", status="unknown", reason="", detail=detail)
    monkeypatch.setattr(ask, "probe", lambda *_args, **_rest: iter([outcome]))
    with pytest.raises(UsageError, match=said):
        ask.ask_op(op, TARGET, {}, {})


def test_lists_numbers_and_names_reach_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    session = FakeSession()
    spec = "[2x2:float32,3x2:float32],dim=0"
    found = answer(monkeypatch, "aten::cat", session=session, args=spec)
    assert found.error is not None
    assert (found.error.elements, found.error.differs) == (10, 0)
    assert session.given["dim"] == 0
    answer(monkeypatch, "aten::_to_copy", session=session, args="2x2,dtype=float16")
    assert str(session.given["dtype"]) == "torch.float16"


def test_what_is_raised_is_told_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    said = Call("raises", "raises", message="no\nsecond line", error="NotImplementedError")
    found = answer(monkeypatch, "aten::exp", session=FakeSession({"aten::exp": said}))
    assert (found.outcome, found.message) == ("raises", "no\nsecond line")
    assert found.exception == "NotImplementedError"
    assert found.error is None


def test_graphs_fallbacks_and_waits_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    node = trace.GraphNode(selector="matrixMultiplication", inputs=(), outputs=())
    feed = trace.GraphNode(selector="placeholder", inputs=(), outputs=())
    said = Call(
        "unknown", "native-graph", message="not executable: it", routines=("sgetrf",),
        fallbacks=("aten::lu",),
        events=(
            trace.Dispatch(op="aten::exp", depth=0),
            trace.GraphRun(nodes=(feed, node)),
            trace.Commit(wait=True),
            trace.Allocation(kind="allocate", nbytes=256),
        ),
    )  # fmt: skip
    ran = run(monkeypatch, "aten::exp", FakeSession({"aten::exp": said}))
    found = msgspec.convert(ran.detail, OpAnswer)
    assert ran.status == "unknown"
    assert found.graph == ("matrixMultiplication",)
    assert found.fallbacks == ("aten::lu", "LAPACK sgetrf")
    assert (found.waits, found.allocated) == (1, 256)


def test_a_simulator_that_dies_is_an_unknown_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Outcome(key="", status="unknown", reason="the simulator failed: SIGSEGV")
    monkeypatch.setattr(ask, "probe", lambda *_args, **_rest: iter([lost]))
    found = ask.ask_op("aten::exp", TARGET, {"dtype": "float32"}, {})
    assert (found.outcome, found.message) == ("unknown", "the simulator failed: SIGSEGV")
    assert "unknown" in answer_text(found)
