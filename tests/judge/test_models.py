from __future__ import annotations

from scanner.capture.ledger import Captured, NotCaptured
from scanner.capture.protocol import Attempt
from scanner.judge.models import judge_model, model_without_graph
from scanner.records import Capture
from tests.samples import KERNEL, MISSING, TORCH_29, TORCH_214, Facts, call, graph, partial

KNOWN = Facts(
    {
        "aten::mm": KERNEL,
        ("aten::missing", "2.9.1"): MISSING,
        ("aten::missing", "2.14.0"): KERNEL,
    }
)
OF = {TORCH_29.id: "old", TORCH_214.id: "new"}


def test_each_target_is_judged_on_the_graph_that_it_dispatches() -> None:
    old = graph(call("aten::mm"), call("aten::missing"))
    new = graph(call("aten::missing"))
    model = Captured(name="Net", entry="Net", graphs={"old": old, "new": new})
    found = judge_model(model, [TORCH_29, TORCH_214], OF, KNOWN)
    assert [(row.op, [each.status for each in row.verdicts]) for row in found.ops] == [
        ("aten::mm", ["native"]),
        ("aten::missing", ["unsupported", "native"]),
    ]
    assert [(each.rule, each.target) for each in found.findings] == [("OPS101", "torch==2.9.1")]
    assert found.coverage.by_config == {"native": 1, "unsupported": 1}


def test_what_any_capture_missed_is_kept() -> None:
    whole = Capture(method="meta", complete=True, notes=("inputs inferred",))
    graphs = {
        "old": graph(call("aten::mm"), capture=whole),
        "new": graph(call("aten::mm"), capture=partial("the backward pass", "it raised")),
    }
    model = Captured(name="Net", entry="Net", graphs=graphs)
    found = judge_model(model, [TORCH_29, TORCH_214], OF, KNOWN)
    assert found.capture is not None
    assert not found.capture.complete
    assert found.capture.notes == ("inputs inferred",)
    assert [part.what for part in found.capture.unseen] == ["the backward pass"]
    assert [each.rule for each in found.findings] == ["OPS902"]


def test_a_model_that_was_not_captured_tells_everything_in_its_finding() -> None:
    failure = NotCaptured(
        name="Net",
        entry="Net",
        message="forward raised ValueError: bad shape",
        remedy="Give inputs.",
        attempts=(
            Attempt(method="meta", reason="no\n  values"),
            Attempt(method="real", reason="Net: forward raised ValueError: bad shape"),
        ),
        said=("line one", "line two"),
    )
    found = model_without_graph(failure, "model.py", "train")
    (only,) = found.findings
    assert only.rule == "OPS901"
    assert only.message == (
        "Net could not be captured: forward raised ValueError: bad shape; "
        "tried meta: no; values; it printed: line one | line two"
    )
    assert only.remedy == "Give inputs."
    assert found.capture is None
    assert found.source == "model.py"


def test_a_missing_file_is_named_once() -> None:
    failure = NotCaptured(
        name="gone.py", entry="", message="gone.py: no such file", unreadable=True
    )
    (only,) = model_without_graph(failure, "gone.py", "auto").findings
    assert (only.rule, only.message) == ("OPS903", "gone.py could not be loaded: no such file")
