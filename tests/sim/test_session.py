"""Calls into a real release; needs one that was prepared: `opscan sim prepare torch==2.9.1`."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from scanner.sim import host, trace
from scanner.sim.call import Call
from scanner.sim.entry import ArgumentError
from scanner.sim.executors import Answer, Done, Launch, NoGraphs, NoShaders
from scanner.sim.machine.faults import Fault
from scanner.sim.prepare.release import list_prepared
from scanner.sim.session import Session
from scanner.sim.values import HostTensor

pytestmark = pytest.mark.sim


class Pretend(NoShaders):
    """Says that every kernel ran; memory stays as it is."""

    def run(self, launch: Launch) -> Answer:
        return Done()


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    known = {prepared.release: prepared for prepared in list_prepared()}
    if "2.9.1" not in known:
        pytest.skip("torch 2.9.1 is not prepared")
    with host.open(known["2.9.1"], macos="15.0", shaders=lambda region: Pretend()) as opened:
        yield opened


def floats(*values: float, shape: tuple[int, ...] = ()) -> HostTensor:
    shape = shape or (len(values),)
    stride = (1,) if len(shape) == 1 else (shape[1], 1)
    return HostTensor("float32", shape, stride, 0, struct.pack(f"<{len(values)}f", *values))


def launches(call: Call) -> list[str]:
    return [event.kernel for event in call.events if isinstance(event, trace.Launch)]


def test_a_kernel_is_chosen_by_the_release(session: Session) -> None:
    call = session.call("aten::add.Tensor", (floats(1, 2, 3), floats(4, 5, 6)))
    assert call.outcome == call.path == "native-shader"
    assert launches(call) == ["add_dense_float_float"]
    (result,) = call.outputs
    assert (result.dtype, result.shape, result.stride, result.device) == (
        "float32",
        (3,),
        (1,),
        "mps",
    )
    assert call.events[0] == trace.Dispatch(op="aten::add.Tensor", depth=0)


def test_the_exact_text_of_an_exception(session: Session) -> None:
    call = session.call("aten::add.Tensor", (floats(1, 2, 3), floats(4, 5)))
    assert (call.outcome, call.error) == ("raises", "RuntimeError")
    assert call.message == (
        "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 0"
    )


def test_an_operator_without_a_kernel_raises(session: Session) -> None:
    call = session.call("aten::linalg_qr", (floats(1, 2, 3, 4, shape=(2, 2)),))
    assert (call.outcome, call.error) == ("raises", "NotImplementedError")
    assert "'aten::linalg_qr.out' is not currently implemented for the MPS device" in call.message


def test_a_silent_fallback_is_seen(session: Session) -> None:
    arguments = (floats(3, 4, shape=(1, 2)), HostTensor("int64", (1,), (1,), 0, bytes(8)), 1.0, 2.0)
    call = session.call("aten::embedding_renorm_", arguments)
    assert call.outcome == "fallback"
    assert call.fallbacks == ("aten::embedding_renorm_",)


def test_graphs_are_recorded_and_not_executed_without_an_interpreter(session: Session) -> None:
    square = floats(1, 2, 3, 4, shape=(2, 2))
    with host.open(session.prepared, macos="15.0", graphs=NoGraphs()) as opened:
        call = opened.call("aten::mm", (square, square))
    assert (call.outcome, call.path) == ("unknown", "native-graph")
    assert call.message == "not executable: no graph interpreter"
    (run,) = call.runs
    assert len(run.feeds) == 2  # type: ignore[union-attr]


def test_layouts_survive_the_journey(session: Session) -> None:
    storage = struct.pack("<20f", *range(20))
    given = HostTensor("float32", (3, 2), (1, 5), 4, storage)
    assert session.download(session.upload(given)) == given


def test_aliases_share_their_storage(session: Session) -> None:
    base = session.upload(floats(1, 2, 3, 4))
    view = session.upload(HostTensor("float32", (2,), (2,), 1, b""), alias=base)
    call = session.call("aten::zero_", (base,))
    assert call.outcome == "native-shader"
    found = session.download(view)
    assert (found.shape, found.stride, found.offset) == ((2,), (2,), 1)
    assert found.storage == bytes(16)


def test_numbers_lists_and_keywords(session: Session) -> None:
    parts = session.call("aten::split.Tensor", (floats(1, 2, 3), 2))
    assert [tensor.shape for tensor in parts.outputs[0]] == [(2,), (1,)]
    call = session.call(
        "aten::empty.memory_format", ([2, 3],), {"dtype": "float16", "device": "mps"}
    )
    assert (call.outputs[0].dtype, call.outputs[0].shape) == ("float16", (2, 3))
    with pytest.raises(ArgumentError, match="takes no colour"):
        session.call("aten::sin", (floats(1),), {"colour": 1})


def test_an_unknown_operator(session: Session) -> None:
    call = session.call("aten::no_such_thing")
    assert (call.outcome, call.message) == (
        "unknown",
        "this release has no operator aten::no_such_thing",
    )


def test_a_fault_loses_tensors_and_nothing_else(session: Session) -> None:
    kept = session.upload(floats(1))
    runtime = session._services.runtime
    del session._machine.cpu.handlers["_objc_msgSend"]
    call = session.call("aten::sin", (floats(1),))
    assert (call.outcome, call.message) == (
        "unknown",
        "host function objc_msgSend is not imitated",
    )
    assert session._services.runtime is not runtime
    with pytest.raises(Fault, match="earlier start"):
        session.download(kept)
    assert session.call("aten::sin", (floats(1),)).outcome == "native-shader"


def test_code_that_runs_too_long_is_stopped(session: Session) -> None:
    cpu = session._machine.cpu
    allowed, cpu.blocks = cpu.blocks, 500
    try:
        call = session.call("aten::sin", (floats(1),))
    finally:
        cpu.blocks = allowed
    assert call.outcome == "unknown"
    assert "did not return within 500 basic blocks" in call.message


def test_another_system_takes_another_path(session: Session) -> None:
    """float64 has no counterpart on the device, whatever the system."""
    double = HostTensor("float64", (1,), (1,), 0, bytes(8), device="cpu")
    call = session.call("aten::_to_copy", (double,), {"device": "mps"})
    assert call.outcome == "raises"
    assert "doesn't support float64" in call.message


@pytest.mark.parametrize(("text", "version"), [("15.5", (15, 5)), ("26", (26, 0))])
def test_versions_of_macos(text: str, version: tuple[int, int]) -> None:
    assert host.macos_version(text) == version


def test_the_class_of_an_exception_of_linear_algebra(session: Session) -> None:
    info = HostTensor("int32", (), (), 0, struct.pack("<i", 1), device="cpu")
    call = session.call("aten::_linalg_check_errors", (info, "linalg.inv"), {"is_matrix": True})
    assert (call.outcome, call.error) == ("raises", "LinAlgError")
    assert "diagonal element 1 is zero" in call.message


def test_buffers_know_what_was_asked_for(session: Session) -> None:
    call = session.call("aten::sin", (floats(1, 2, 3),))
    (launch,) = (event for event in call.events if isinstance(event, trace.Launch))
    slacks = {(b.length, b.slack) for b in launch.bindings if b.kind == "buffer"}
    assert slacks == {(256, 244)}


def test_with_the_fallback_variable_an_operator_without_a_kernel_runs_on_the_cpu(
    session: Session,
) -> None:
    square = floats(1, 0, 0, 1, shape=(2, 2))
    assert session.call("aten::linalg_qr", (square,)).outcome == "raises"
    with host.open(session.prepared, fallback=True) as falling:
        for _ in range(2):
            call = falling.call("aten::linalg_qr", (square,))
            assert (call.outcome, call.fallbacks) == ("fallback", ("aten::linalg_qr.out",))
            falling.restart()
