from __future__ import annotations

from scanner.capture.ledger import Captured, Ledger, NotCaptured
from scanner.capture.protocol import Begin, CandidateInfo, Done, Graph, Located
from tests.samples import call, graph

NET = CandidateInfo(name="Net", entry="Net", how="class")


def ledger(*profiles: str) -> Ledger:
    """What is known when Net was captured for these of two profiles."""
    found = Ledger(argument="model.py", profiles=2)
    found.record(Located(candidates=(NET,)))
    found.record(Begin(entry="Net"))
    for profile in profiles:
        found.record(Graph(entry="Net", profile=profile, graph=graph(call("aten::mm"))))
    return found


def test_a_model_is_complete_with_its_last_graph() -> None:
    assert ledger("old").in_flight == "Net"
    found = ledger("old", "new")
    assert found.in_flight is None
    (only,) = found.models()
    assert isinstance(only, Captured)
    assert list(only.graphs) == ["old", "new"]


def test_a_death_between_two_graphs_is_blamed_on_the_model() -> None:
    found = ledger("old")
    found.blame("the process was killed by SIGSEGV")
    (only,) = found.models()
    assert isinstance(only, NotCaptured)
    assert found.settled() == ("Net",)


def test_a_graph_that_never_came_is_no_pass() -> None:
    found = ledger("old")
    found.record(Done())
    (only,) = found.models()
    assert isinstance(only, NotCaptured)
    assert only.message == "only 1 of 2 ways to dispatch it were captured"
