from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from scanner.judge.measured import call_of
from scanner.judge.rows import call_order, coverage, merge_rows, worst_status
from scanner.records import OpCall, OpGraph, OpReport, Status, Step, Target, Verdict
from scanner.statuses import SEVERITY_ORDER
from tests.samples import TORCH_29, TORCH_214, at, call, graph, spec


def said(target: Target, *statuses: Status) -> list[Verdict]:
    return [
        Verdict(target=target.id, status=status, evidence=None, reason="") for status in statuses
    ]


def rows_of(*judged: tuple[Target, OpGraph, list[Verdict]]) -> list[tuple[str, list[str]]]:
    return [
        (row.op, [f"{each.target} {each.status}" for each in row.verdicts])
        for row in merge_rows(judged)
    ]


def test_targets_that_dispatch_the_same_share_a_row() -> None:
    found = graph(call("aten::mm"))
    assert rows_of(
        (TORCH_29, found, said(TORCH_29, "native")),
        (TORCH_214, found, said(TORCH_214, "fallback")),
    ) == [("aten::mm", ["torch==2.9.1 native", "torch==2.14.0 fallback"])]


def test_values_are_part_of_a_row_and_not_of_its_identity() -> None:
    one, other = (call("aten::mm", values={"self": (number,)}) for number in (1, 2))
    (row,) = merge_rows(
        [
            (TORCH_29, graph(one), said(TORCH_29, "native")),
            (TORCH_214, graph(other), said(TORCH_214, "native")),
        ]
    )
    assert row.config["values"] == {"self": [1]}
    assert call_of(row).values == {"self": (1,)}
    (without,) = merge_rows([(TORCH_29, graph(call("aten::mm")), said(TORCH_29, "native"))])
    assert "values" not in without.config


def test_what_only_one_target_dispatches_stands_where_it_runs() -> None:
    old = graph(call("aten::a"), call("aten::mm"), call("aten::z"))
    new = graph(call("aten::first"), call("aten::a"), call("aten::x"), call("aten::y"))
    found = rows_of(
        (TORCH_29, old, said(TORCH_29, *["native"] * 3)),
        (TORCH_214, new, said(TORCH_214, *["native"] * 4)),
    )
    assert [op.removeprefix("aten::") for op, _ in found] == ["first", "a", "x", "y", "mm", "z"]
    assert dict(found)["aten::mm"] == ["torch==2.9.1 native"]


def executed(letters: str) -> OpGraph:
    """A step of calls named by one letter each, in this order."""
    ops = list(dict.fromkeys(letters))
    return graph(
        *(call(f"aten::{letter}", calls=letters.count(letter)) for letter in ops),
        steps=tuple(
            Step(op=ops.index(letter), location=0, reads=(), writes=()) for letter in letters
        ),
    )


def orders_of(*steps: OpGraph) -> list[tuple[list[str], str]]:
    targets = [Target(framework="torch", version=f"2.{minor}.0") for minor in range(len(steps))]
    judged = [
        (target, step, said(target, *["native"] * len(step.ops)))
        for target, step in zip(targets, steps, strict=True)
    ]
    names = [row.op.removeprefix("aten::") for row in merge_rows(judged)]
    return [
        ([target.removeprefix("torch==") for target in order.targets],
         "".join(names[row] for row in order.rows))
        for order in call_order(judged)
    ]  # fmt: skip


def test_order_is_that_of_execution_and_points_into_the_rows() -> None:
    assert orders_of(executed("abab"), executed("bac"), executed("abab")) == [
        (["2.0.0", "2.2.0"], "abab"),
        (["2.1.0"], "bac"),
    ]


def test_a_graph_without_order_or_with_part_of_one_has_none() -> None:
    part = executed("aab")
    part = msgspec.structs.replace(part, steps=part.steps[:2])
    assert orders_of(graph(call("aten::a"), steps=()), part) == []


def test_configurations_differ_by_dtype_shape_attributes_phase_and_calls() -> None:
    different = [
        call("aten::mm"),
        call("aten::mm", spec(dtype="float16")),
        call("aten::mm", spec((2, 2))),
        call("aten::mm", attributes={"alpha": 2}),
        call("aten::mm", phase="backward"),
        call("aten::mm", calls=2),
    ]
    elsewhere = call("aten::mm", locations=(at(99),))
    found = merge_rows(
        [
            (TORCH_29, graph(*different), said(TORCH_29, *["native"] * 6)),
            (TORCH_214, graph(elsewhere), said(TORCH_214, "native")),
        ]
    )
    assert len(found) == 6
    assert len(found[0].verdicts) == 2


def row(calls: int, *verdicts: Verdict) -> OpReport:
    return OpReport(op="o", phase="loss", calls=calls, config={}, verdicts=verdicts, locations=())


def test_coverage_counts_each_configuration_once_under_its_worst_status() -> None:
    found = coverage(
        [
            row(10, *said(TORCH_29, "native"), *said(TORCH_214, "native")),
            row(3, *said(TORCH_29, "unsupported"), *said(TORCH_214, "native")),
            row(2, *said(TORCH_214, "unknown")),
        ]
    )
    assert found.by_config == {"native": 1, "unknown": 1, "unsupported": 1}
    assert found.by_call == {"native": 10, "unknown": 2, "unsupported": 3}
    assert found.by_target == {
        "torch==2.9.1": {
            "by_config": {"native": 1, "unsupported": 1},
            "by_call": {"native": 10, "unsupported": 3},
        },
        "torch==2.14.0": {
            "by_config": {"native": 2, "unknown": 1},
            "by_call": {"native": 13, "unknown": 2},
        },
    }


def test_unknown_is_worse_than_native() -> None:
    assert worst_status(said(TORCH_29, "native", "unknown", "composite")) == "unknown"


statuses = st.sampled_from(SEVERITY_ORDER)


@given(st.lists(st.tuples(st.integers(1, 50), statuses, statuses)))
def test_nothing_is_lost_in_counting(counted: list[tuple[int, Status, Status]]) -> None:
    rows = [
        row(calls, *said(TORCH_29, first), *said(TORCH_214, second))
        for calls, first, second in counted
    ]
    found = coverage(rows)
    calls = sum(each.calls for each in rows)
    assert sum(found.by_config.values()) == len(rows)
    assert sum(found.by_call.values()) == calls
    for target in found.by_target.values():
        assert sum(target["by_config"].values()) == len(rows)
        assert sum(target["by_call"].values()) == calls


names = st.lists(st.sampled_from("abcdef"), max_size=6)


@given(st.lists(names, min_size=1, max_size=4))
def test_merging_keeps_every_call_of_every_graph_once(graphs: list[list[str]]) -> None:
    def ops(letters: list[str]) -> list[OpCall]:
        return [call(f"aten::{letter}") for letter in letters]

    targets = [Target(framework="torch", version=f"2.{minor}.0") for minor in range(len(graphs))]
    judged = [
        (target, graph(*ops(letters)), said(target, *["native"] * len(letters)))
        for target, letters in zip(targets, graphs, strict=True)
    ]
    rows = merge_rows(judged)
    for target, letters in zip(targets, graphs, strict=True):
        there = [row.op for row in rows for each in row.verdicts if each.target == target.id]
        assert sorted(there) == sorted(f"aten::{letter}" for letter in letters)
    first = [row.op for row in rows if row.verdicts[0].target == targets[0].id]
    assert first == [f"aten::{letter}" for letter in graphs[0]]
