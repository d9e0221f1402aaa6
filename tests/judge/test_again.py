from __future__ import annotations

import msgspec
import pytest

from scanner.capture.ledger import Captured, NotCaptured
from scanner.errors import UsageError
from scanner.judge.again import judge_again
from scanner.judge.gate import Gate, exit_code, summarize
from scanner.judge.models import judge_model, model_without_graph
from scanner.records import BatchSweep, CallOrder, Report, Step, Target
from scanner.report.interface import Style
from scanner.report.json_ import parse, render
from tests.samples import COMPOSITE, KERNEL, MISSING, TORCH_29, TORCH_210, Facts, call, graph, spec

KNOWN = Facts(
    {
        "aten::mm": KERNEL,
        "aten::_to_copy": KERNEL,
        "aten::linear": KERNEL,
        ("aten::missing", "2.9.1"): MISSING | {"fixed_in": "2.10.0"},
        ("aten::missing", "2.10.0"): KERNEL,
        ("aten::linear", "1.12.1"): MISSING,
        "aten::pinv": COMPOSITE | {"leads": {"aten::missing": "maybe", "aten::mm": "maybe"}},
    }
)


def report(target: Target = TORCH_29) -> Report:
    wide = spec(dtype="float64")
    captured = Captured(
        name="Net",
        entry="Net",
        graphs={
            "p": graph(
                call("aten::mm", attributes={"beta": 1.0}),
                call("aten::missing", calls=3),
                call("aten::_to_copy", outputs=(wide,)),
                call("aten::pinv", inner={"aten::pinv": ("aten::mm",)}),
                steps=tuple(
                    Step(op=op, location=-1, reads=(), writes=()) for op in (1, 0, 1, 2, 1, 3)
                ),
            )
        },
    )
    failure = NotCaptured(name="Other", entry="Other", message="it raised")
    models = (
        judge_model(captured, [target], {target.id: "p"}, KNOWN),
        model_without_graph(failure, "model.py", "auto"),
    )
    return Report(
        tool={"name": "opscan", "version": "0.1.0"},
        targets=(target,),
        models=models,
        summary=summarize(models),
        exit_code=exit_code(models, Gate()),
    )


def saved(found: Report) -> Report:
    return parse(render(found, Style()).encode(), "report.json")


def test_judging_again_for_the_same_targets_changes_nothing() -> None:
    assert judge_again(saved(report()), (), Gate(), KNOWN) == report()


def test_another_target_gets_the_verdicts_that_a_scan_would_give() -> None:
    found = judge_again(saved(report()), (TORCH_210,), Gate(), KNOWN)
    assert found == report(TORCH_210)
    assert [each.rule for each in found.models[0].findings] == ["OPS104"]


def test_the_order_of_execution_is_kept_unless_it_is_none() -> None:
    before = report()
    (order,) = judge_again(saved(before), (), Gate(), KNOWN).models[0].order
    assert order == CallOrder(targets=(TORCH_29.id,), rows=(1, 0, 1, 2, 1, 3))
    broken = msgspec.structs.replace(order, rows=(1, 99))
    model = msgspec.structs.replace(before.models[0], order=(broken,))
    before = msgspec.structs.replace(before, models=(model, *before.models[1:]))
    assert judge_again(before, (), Gate(), KNOWN).models[0].order == ()


def test_the_gate_is_applied_anew() -> None:
    assert judge_again(report(), (), Gate(fail_on="never"), KNOWN).exit_code == 3
    allowing = Gate(fail_on="never", allow_incomplete=True)
    assert judge_again(report(), (), allowing, KNOWN).exit_code == 0


def test_a_release_that_dispatches_other_ops_needs_a_scan() -> None:
    old = msgspec.structs.replace(TORCH_29, version="1.12.1")
    with pytest.raises(UsageError) as raised:
        judge_again(report(), (old,), Gate(), KNOWN)
    assert "torch==1.12.1" in raised.value.remedy


def test_what_whole_steps_have_shown_is_kept() -> None:
    before = report()
    whole = BatchSweep(device="cpu", asked=(8,), incomplete="no batch dimension")
    model = msgspec.structs.replace(before.models[0], batches=whole)
    before = msgspec.structs.replace(before, models=(model, *before.models[1:]))
    assert judge_again(before, (), Gate(), KNOWN).models[0].batches == whole
