"""Who is blamed for float64 on the device: what brings it in, once."""

from __future__ import annotations

from scanner.judge.findings import op_findings
from scanner.judge.verdicts import judge
from scanner.records import OpCall, OpGraph, Step, TensorSpec, Value
from tests.samples import KERNEL, TORCH_29, Facts, at, call, graph, spec

NARROW, WIDE = spec(), spec(dtype="float64")


def step(op: int, reads: tuple[int, ...], writes: tuple[int, ...]) -> Step:
    return Step(op=op, location=0, reads=reads, writes=writes)


def value(role: str, name: str = "", dtype: str = "float64") -> Value:
    return Value(nbytes=8, role=role, name=name, dtype=dtype)


def blamed(given: OpGraph) -> list[tuple[str, str]]:
    known = Facts({op.op: KERNEL for op in given.ops})
    verdicts = judge(given, TORCH_29, known)
    return [(f.op, f.message) for f in op_findings(given, TORCH_29, verdicts, known)]


def uses(*inputs: TensorSpec, op: str = "aten::mul.Tensor", line: int = 2) -> OpCall:
    return call(op, *inputs, outputs=(WIDE,), locations=(at(line),))


def test_a_parameter_is_named_once_where_it_is_read_first() -> None:
    ((op, message),) = blamed(
        graph(
            uses(NARROW, WIDE),
            uses(WIDE, op="aten::sum"),
            uses(WIDE, op="aten::exp", line=3),
            steps=(step(0, (0, 1), (2,)), step(1, (2,), (3,)), step(2, (1,), (4,))),
            values=(
                value("input", "0", "float32"),
                value("parameter", "layers.0.weight"),
                *(value("activation") for _ in range(3)),
            ),
        )
    )
    assert op == "aten::mul.Tensor"
    assert message.startswith("parameter layers.0.weight is float64")


def test_a_line_that_reads_several_names_the_first_and_counts_the_rest() -> None:
    ((_, message),) = blamed(
        graph(
            uses(WIDE, WIDE),
            steps=(step(0, (0, 1), (2,)),),
            values=(value("buffer", "a"), value("buffer", "b"), value("activation")),
        )
    )
    assert message.startswith("buffer a is float64")
    assert "1 more" in message


def test_a_parameter_kept_on_the_cpu_is_not_blamed() -> None:
    host = spec(dtype="float64", device="cpu")
    copied = call("aten::_to_copy", host, outputs=(NARROW,))
    given = graph(
        copied,
        steps=(step(0, (0,), (1,)),),
        values=(value("parameter", "w"), value("activation", dtype="float32")),
    )
    assert not blamed(given)


def test_a_new_tensor_is_blamed_once_whether_or_not_its_data_are_copied() -> None:
    fresh = uses(WIDE, op="aten::lift_fresh")
    host = spec(dtype="float64", device="cpu")
    copied = call("aten::_to_copy", host, outputs=(WIDE,), locations=(at(2),))
    used = uses(WIDE, op="aten::sum", line=3)
    assert [op for op, _ in blamed(graph(fresh, used))] == ["aten::lift_fresh"]
    assert [op for op, _ in blamed(graph(copied, fresh, used))] == ["aten::_to_copy"]


def test_without_steps_every_reader_is_reported() -> None:
    assert [op for op, _ in blamed(graph(uses(WIDE)))] == ["aten::mul.Tensor"]
