"""Two releases that only pretend, side by side."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from scanner.cli.sim_text import comparison_text
from scanner.probe.plan import config_key
from scanner.probe.protocol import Outcome
from scanner.probe.sweep import Sample
from scanner.records import OpCall, Target
from scanner.sim.call import Call
from scanner.sim.study import ask, diff_runner
from scanner.sim.study.diff_runner import DiffRunner
from scanner.sim.study.interface import Change, Comparison
from tests.backends.fake_release import FakeSession, fake_simulator
from tests.samples import call, spec

OLD = Target(framework="torch", version="2.9.1")
NEW = Target(framework="torch", version="2.15.0")
RAISES = Call("raises", "raises", message="no kernel\nmore", error="NotImplementedError")
GRAPH = Call("unknown", "native-graph", message="not executable: no graph interpreter")


def change(
    monkeypatch: pytest.MonkeyPatch, before: FakeSession, after: FakeSession, one: OpCall
) -> Change:
    sessions = {"old": fake_simulator(before, OLD), "new": fake_simulator(after, NEW)}
    monkeypatch.setattr(diff_runner, "open_simulator", lambda which: sessions[which])
    return msgspec.convert(DiffRunner("old", {"after": "new"}).run(one).detail, Change)


def answering(outcome: str, op: str = "aten::exp") -> FakeSession:
    session = FakeSession(
        {op: {"raises": RAISES, "unknown": GRAPH}[outcome]}
        if outcome in {"raises", "unknown"}
        else {}
    )
    if outcome == "other":
        session.replaced[op] = "aten::neg"
    return session


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ("runs", "runs", []),
        ("raises", "runs", ["now-runs"]),
        ("runs", "raises", ["now-raises"]),
        ("raises", "raises", []),
        ("unknown", "runs", []),
        ("runs", "other", ["result"]),
    ],
)
def test_kinds(monkeypatch: pytest.MonkeyPatch, before: str, after: str, kinds: list[str]) -> None:
    found = change(monkeypatch, answering(before), answering(after), call("aten::exp"))
    assert list(ask.kinds(found)) == kinds


def test_how_much_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """−x instead of x: twice the value, everywhere."""
    before, after = FakeSession(), FakeSession()
    before.replaced["aten::exp"], after.replaced["aten::exp"] = "aten::clone", "aten::neg"
    found = change(monkeypatch, before, after, call("aten::exp"))
    assert (found.elements, found.differs, found.max_rel) == (16, 16, 2.0)


def test_random_values_are_not_held_against_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    found = change(
        monkeypatch, FakeSession(), FakeSession(), call("aten::bernoulli", attributes={})
    )
    assert (found.elements, found.differs) == (0, 0)


def test_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = FakeSession(), FakeSession()
    before.replaced["aten::exp"], after.replaced["aten::exp"] = "aten::clone", "aten::t"
    found = change(monkeypatch, before, after, call("aten::exp"))
    assert found.layout == "output 0: strides [4, 1] became [1, 4]"


def comparison(monkeypatch: pytest.MonkeyPatch) -> Comparison:
    """Four ops: one got a kernel, one lost it, one computes otherwise, one is not known."""
    plans = {
        "aten::exp": ("raises", "runs"),
        "aten::sin": ("runs", "raises"),
        "aten::cos": ("runs", "other"),
        "aten::tan": ("unknown", "runs"),
    }
    samples = [Sample(name=op[6:], call=call(op, spec((2, 3)))) for op in plans]

    def probe(calls: list[OpCall], device: str, options: Any, **_rest: Any) -> Any:
        assert (device, options) == (f"metal-sim:{OLD.id}", {"after": f"metal-sim:{NEW.id}"})
        for one in calls:
            before, after = (answering(each, one.op) for each in plans[one.op])
            found = change(monkeypatch, before, after, one)
            yield Outcome(
                key=config_key(one), status="native", reason="", detail=msgspec.to_builtins(found)
            )

    monkeypatch.setattr(ask, "probe", probe)
    return ask.compare_releases(OLD, NEW, samples, {})


def test_golden(monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
    found = comparison(monkeypatch)
    assert (found.configurations, found.unknown) == (4, 1)
    assert comparison_text(found) == snapshot(name="text")
    assert msgspec.json.format(msgspec.json.encode(found), indent=2).decode() == snapshot(
        name="json"
    )


def test_a_lost_worker_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    one = call("aten::exp")
    lost = Outcome(key=config_key(one), status="unknown", reason="the simulator failed")
    monkeypatch.setattr(ask, "probe", lambda *_args, **_rest: iter([lost]))
    found = ask.compare_releases(OLD, NEW, [Sample(name="exp", call=one)], {})
    assert (found.configurations, found.unknown, found.differences) == (1, 1, ())
