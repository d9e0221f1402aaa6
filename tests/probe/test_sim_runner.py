"""Configurations on a simulated release: what is judged, what is marked, what stays unknown."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from scanner.backends.interface import DeviceFacts, Unusable
from scanner.probe import torch_runner
from scanner.probe.limits import Launch
from scanner.probe.outcome import CaseResult
from scanner.probe.plan import config_key
from scanner.probe.runner import Ran
from scanner.probe.sim_runner import SimRunner
from scanner.probe.supervisor import probe
from scanner.records import OpCall
from scanner.sim.call import Call
from tests.backends.fake_release import FakeSession, fake_simulator
from tests.samples import call, spec

from .iso_fakes import FACTS, QUICK

MISSING = (
    "The operator 'aten::neg' is not currently implemented for the MPS device. If you want this op "
    "to be considered, comment."
)


def run(
    monkeypatch: pytest.MonkeyPatch,
    answer: Call | None = None,
    one: OpCall | None = None,
) -> Ran:
    """`neg` on a release that answers in this way, or computes rightly."""
    device = fake_simulator(FakeSession({"aten::neg": answer} if answer else {}))
    monkeypatch.setattr(torch_runner, "open_device", lambda _spec: device)
    return SimRunner("metal-sim:2.9.1", {"timing": True}).run(one or call("aten::neg"))


def test_agreement_is_simulated_and_gradients_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run(monkeypatch)
    assert (ran.status, ran.detail["evidence"]) == ("native", "simulated")
    assert ran.detail["simulation"]["kernels"] == ["neg_float"]
    assert ran.detail["gradient"]["status"] == "skipped"
    assert "timing" not in ran.detail


def test_a_graph_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Call("unknown", "native-graph", message="not executable: no graph interpreter")
    ran = run(monkeypatch, answer)
    assert (ran.status, ran.reason) == ("unknown", "not executable: no graph interpreter")
    assert ran.detail["evidence"] == "simulated-graph"


def test_what_is_raised_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Call("raises", "raises", message=MISSING, error="NotImplementedError")
    ran = run(monkeypatch, answer)
    assert ran.status == "unsupported"
    assert ran.reason == (
        "it raises NotImplementedError: The operator 'aten::neg' is not currently implemented for "
        "the MPS device"
    )
    assert MISSING in ran.detail["error"]


@pytest.mark.parametrize(
    ("seen", "named"),
    [
        ({"fallbacks": ("aten::erfinv.out",)}, "aten::erfinv.out"),
        ({"routines": ("sgetrf", "sgetrf")}, "aten::neg (LAPACK sgetrf)"),
    ],
)
def test_fallbacks_are_named(
    monkeypatch: pytest.MonkeyPatch, seen: dict[str, Any], named: str
) -> None:
    assert run(monkeypatch, Call("fallback", "fallback", **seen)).fallbacks == (named,)


def test_a_tensor_that_the_release_refuses_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    said = Call("raises", "raises", message="no float64 here", error="TypeError")
    device = fake_simulator(FakeSession({"aten::_to_copy": said}))
    monkeypatch.setattr(torch_runner, "open_device", lambda _spec: device)
    ran = SimRunner("metal-sim:2.9.1", {}).run(call("aten::neg", spec(dtype="float64")))
    assert (ran.status, ran.reason) == ("unsupported", "it raises TypeError: no float64 here")


def test_out_of_bounds_accesses_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Call("native-shader", "native-shader", findings=("reads past buffer 0",))
    assert run(monkeypatch, answer).detail["simulation"]["findings"] == ["reads past buffer 0"]


def test_arguments_that_cannot_be_taken_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    sparse = spec((4, 4), layout="sparse_coo", stride=())
    ran = run(monkeypatch, one=call("aten::neg", sparse))
    assert ran.status == "unknown"
    assert "sparse_coo" in ran.reason
    result = {name: ran.detail[name] for name in CaseResult.__struct_fields__ if name != "gradient"}
    assert result["op"] == "aten::neg"


def worst(monkeypatch: pytest.MonkeyPatch, session: FakeSession, op: str = "aten::exp") -> Ran:
    """The op with `--ulp worst`."""
    device = fake_simulator(session)
    monkeypatch.setattr(torch_runner, "open_device", lambda _spec: device)
    return SimRunner("metal-sim:2.9.1", {"ulp": "worst"}).run(call(op))


def test_a_status_that_hangs_on_approximate_functions_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = FakeSession()
    session.astray = {"up": {"aten::exp": "aten::neg"}, "even": {"aten::exp": "aten::neg"}}
    ran = worst(monkeypatch, session)
    assert ran.status == "unknown"
    assert ran.reason.startswith(
        "agrees with approximate functions at their nearest; "
        "wrong at the end of their allowed error (up, even): "
    )
    statuses = {"nearest": "native", "up": "wrong", "down": "native", "odd": "native"}
    assert ran.detail["ulp"] == {"depends": True, "statuses": {**statuses, "even": "wrong"}}
    assert session.shaders.direction == "nearest"


def test_a_fault_that_is_not_there_at_an_end_is_none_that_is_proven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = FakeSession()
    session.replaced = {"aten::exp": "aten::neg"}
    session.astray = {"down": {"aten::exp": "aten::exp"}}
    ran = worst(monkeypatch, session)
    assert (ran.status, ran.reason) == (
        "unknown",
        "wrong with approximate functions at their nearest; "
        "agrees at the end of their allowed error (down)",
    )


def test_what_holds_at_every_end_keeps_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = worst(monkeypatch, FakeSession())
    assert (ran.status, ran.reason, ran.detail["ulp"]["depends"]) == ("native", "", False)
    raised = FakeSession({"aten::exp": Call("raises", "raises", message="no", error="")})
    assert "ulp" not in worst(monkeypatch, raised).detail  # nothing was launched


class Failing:
    """A runner that does what a broken emulator does to its process."""

    facts = DeviceFacts(backend="metal-sim", name="M2", framework=FACTS.framework, os=FACTS.os)

    def __init__(self, device: str, options: dict[str, Any]) -> None: ...

    def check(self) -> Unusable | None:
        return None

    def run(self, call: OpCall) -> Ran:
        if call.op == "fake::dies":
            os.kill(os.getpid(), signal.SIGABRT)
        while call.op == "fake::hangs":
            signal.pause()
        return Ran(status="native", reason="")

    def settle(self) -> None: ...

    def held(self) -> int:
        return 0

    def trim(self) -> None: ...


def test_a_simulator_that_dies_or_hangs_says_nothing_about_the_op() -> None:
    calls = [
        OpCall(op=f"fake::{name}", phase="forward", inputs=()) for name in ("dies", "hangs", "runs")
    ]
    runner = f"{__name__}:Failing"
    found = {
        outcome.key: outcome
        for outcome in probe(
            calls, "metal-sim:2.9.1", launch=Launch(runner=runner, workers=1), limits=QUICK
        )
    }
    dies, hangs, runs = (found[config_key(each)] for each in calls)
    assert (dies.status, hangs.status, runs.status) == ("unknown", "unknown", "native")
    assert "the simulator failed: ends the process with SIGABRT" in dies.reason
    assert "the simulator failed: does not return" in hangs.reason
    assert dies.death is not None
