"""One configuration on devices that are right, wrong, incapable or careless."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest
import torch
from torch import Tensor

from scanner.backends.cpu import CpuDevice
from scanner.backends.storage import copy_all
from scanner.probe.attempt import with_saved
from scanner.probe.execute import Options, run_case
from scanner.probe.inputs import drawn
from scanner.probe.outcome import CaseResult
from scanner.probe.schema import schema_of
from scanner.records import OpCall
from tests.probe.num_support import (
    QUICK,
    Accurate,
    Spoiled,
    biased,
    call,
    in_place,
    kinds,
    mm,
    noisy,
    one_nan,
    run_spoiled,
    spec,
    zeroed_tile,
)

FLOATS = ("float32", "float16", "bfloat16")
RELU = call("aten::relu", spec(shape=(16, 16)))
ADD_ = call("aten::add_.Tensor", spec(shape=(8, 8)), spec("other", (8, 8)), alpha=1)


class Acting(CpuDevice):
    """Runs a function in place of every op."""

    def __init__(self, act: Callable[..., Any]) -> None:
        self._act = act

    def call(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._act(lambda: CpuDevice.call(self, op, args, kwargs), args)


def act(configuration: OpCall, function: Callable[..., Any]) -> CaseResult:
    return run_case(configuration, Acting(function), QUICK)


@pytest.mark.parametrize("configuration", [RELU, ADD_, mm(), mm("bfloat16")], ids=lambda c: c.op)
def test_the_cpu_agrees_with_itself(configuration: OpCall) -> None:
    result = run_case(configuration, CpuDevice())
    assert result.status == "native"
    assert result.detections == ()
    assert [output.passed for output in result.outputs] == [True]


@pytest.mark.parametrize("dtype", FLOATS)
def test_noise_of_three_units_passes(dtype: str) -> None:
    assert run_spoiled(mm(dtype), noisy).status == "native"


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("change", "status"), [(biased, "wrong"), (zeroed_tile, "wrong"), (one_nan, "nan")]
)
def test_faults_are_found_in_every_dtype(
    dtype: str, change: Callable[[Tensor], Any], status: str
) -> None:
    assert run_spoiled(mm(dtype), change).status == status


def test_noise_on_an_op_that_only_copies_is_wrong() -> None:
    assert run_spoiled(RELU, noisy).status == "wrong"


def test_nan_fails_though_an_input_holds_infinities() -> None:
    masked = torch.zeros(8, 8)
    masked[:, 4:] = -torch.inf
    configuration = call("aten::_softmax", spec(shape=(8, 8)), dim=1, half_to_float=False)
    assert run_case(configuration, CpuDevice(), QUICK, [masked]).status == "native"
    result = run_case(configuration, Spoiled(in_place(one_nan)), QUICK, [masked])
    assert (result.status, kinds(result)) == ("nan", {"nan-appears"})


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_half_precision_complex_numbers_are_compared() -> None:
    configuration = call("aten::view_as_real", spec(shape=(5,), dtype="complex32"))
    assert run_case(configuration, CpuDevice(), QUICK).status == "native"
    assert run_spoiled(configuration, biased).status == "wrong"


def test_a_failure_is_told_in_figures() -> None:
    def lower(values: Tensor) -> None:
        values[3, 5] -= 100

    result = run_spoiled(mm(), lower)
    assert "1 of 1024 elements fail (0.10%); worst at [3, 5]: device" in result.reason
    assert "smallest tolerance that passes" in result.reason
    assert msgspec.json.decode(msgspec.json.encode(result), type=CaseResult) == result


def test_an_op_without_a_kernel_is_unsupported() -> None:
    def lacking(run: Any, args: Any) -> None:
        raise NotImplementedError("The operator 'aten::relu' is not currently implemented")

    result = act(RELU, lacking)
    assert result.status == "unsupported"
    assert result.error == (
        "NotImplementedError: The operator 'aten::relu' is not currently implemented"
    )


def test_memory_that_is_missing_says_nothing_about_the_op() -> None:
    def full(run: Any, args: Any) -> None:
        raise RuntimeError("MPS backend out of memory")

    assert act(RELU, full).status == "unknown"


def test_a_device_that_is_lost_is_said_to_be() -> None:
    def dead(run: Any, args: Any) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    result = act(RELU, dead)
    assert (result.status, result.device_lost) == ("crash", True)


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        (call("aten::no_such_op", spec()), "has no aten::no_such_op"),
        (call("aten::mm", spec(shape=(2, 3)), spec("mat2", (2, 3))), "the CPU reference raises"),
        (call("aten::relu", spec(dtype="float12")), "no dtype float12"),
    ],
)
def test_what_the_reference_cannot_say_is_unknown(configuration: OpCall, reason: str) -> None:
    result = run_case(configuration, CpuDevice(), QUICK)
    assert result.status == "unknown"
    assert reason in result.reason


def test_a_half_kernel_that_the_cpu_lacks_is_judged_by_the_rounded_reference() -> None:
    inputs = spec("x1", (3, 2), "float16"), spec("x2", (3, 2), "float16")
    configuration = call("aten::_cdist_forward", *inputs, p=2.0, compute_mode=None)

    class Half(CpuDevice):
        """Has the kernel."""

        def call(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            wide = [a.double() if isinstance(a, Tensor) else a for a in args]
            return super().call(op, tuple(wide), kwargs).half()

    assert run_case(configuration, Half(), QUICK).status == "native"


def test_an_in_place_op_that_does_not_write_is_found() -> None:
    result = act(ADD_, lambda run, args: args[0])
    assert result.status == "wrong"
    assert kinds(result) == {"in-place-ignored"}


def test_an_in_place_op_that_writes_elsewhere_is_found() -> None:
    result = act(ADD_, lambda run, args: args[0] + args[1])
    assert "in-place-ignored" in kinds(result)


def test_a_result_that_is_not_the_changed_argument_is_compared_too() -> None:
    result = act(ADD_, lambda run, args: run() * 2)
    assert [(output.name, output.passed) for output in result.outputs] == [
        ("self", True),
        ("0", False),
    ]


def test_an_input_that_is_overwritten_is_found() -> None:
    def careless(run: Any, args: Any) -> Any:
        result = run()
        args[0].zero_()
        return result

    assert kinds(act(RELU, careless)) == {"input-clobbered"}


def test_writing_past_a_view_is_found() -> None:
    def careless(run: Any, args: Any) -> Any:
        torch.as_strided(args[0], (1,), (1,), 0).fill_(7)
        return run()

    view = call("aten::relu_", spec(shape=(3, 3), stride=(4, 1), offset=2))
    assert kinds(act(view, careless)) == {"out-of-bounds"}


def test_an_output_that_only_a_backward_reads_may_be_missing() -> None:
    """The CPU's `buffer` is no result: what MPS gives instead of it is its own affair."""
    one = call("aten::log_sigmoid_forward", spec(shape=(3, 4)))
    assert act(one, lambda run, args: (run()[0], None)).status == "native"
    assert act(one, lambda run, args: (None, run()[1])).status == "wrong"


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda x: x.double(), "dtype"),
        (lambda x: x[:-1], "shape"),
        (lambda x: x.t().contiguous().t(), "stride"),
        (lambda x: [], "missing-output"),
    ],
)
def test_metadata_must_agree(change: Callable[[Tensor], Any], kind: str) -> None:
    result = act(RELU, lambda run, args: change(run()))
    assert result.status == "wrong"
    assert kind in kinds(result)


def test_a_kernel_that_ignores_strides_is_found() -> None:
    def blind(run: Any, args: Any) -> Any:
        memory = torch.empty(0).set_(args[0].untyped_storage())
        return memory.repeat(16)[: args[0].numel()].relu().reshape(args[0].shape)

    for stride, offset in (((1, 16), 0), ((16, 1), 5), ((33, 2), 0), ((1, 0), 0)):
        configuration = call("aten::relu", spec(shape=(16, 16), stride=stride, offset=offset))
        assert run_case(configuration, CpuDevice(), QUICK).status == "native"
        assert act(configuration, blind).status in {"wrong", "nan"}, (stride, offset)


def test_what_was_never_written_is_found() -> None:
    def lazy(run: Any, args: Any) -> Any:
        right = run()
        # What poisoned memory looks like to the op that is given it.
        stale = torch.full((right.numel() * 4,), next(patterns), dtype=torch.uint8)
        right.view(-1)[8:] = stale.view(torch.float32)[8:]
        return right

    patterns = iter((0xCB, 0x35))
    result = act(call("aten::relu", spec(shape=(4, 16))), lazy)
    assert "unwritten" in kinds(result)
    assert "56 of 64 elements were never written" in result.reason


def test_a_result_that_varies_is_noted_and_each_run_is_judged() -> None:
    def varying(step: float) -> Callable[..., Any]:
        runs = iter(range(9))
        return lambda run, args: run() * (1 + step * next(runs))

    slightly = act(mm(), varying(2e-7))
    assert slightly.status == "native"
    assert kinds(slightly) == {"nondeterministic"}
    badly = act(mm(), varying(1e-2))
    assert badly.status == "wrong"
    assert "nondeterministic" in kinds(badly)


def test_values_of_the_step_are_used_where_given() -> None:
    values = [torch.full((16, 16), -1.0)]
    result = run_case(RELU, CpuDevice(), QUICK, values)
    assert result.trial == "captured"
    zero = act(RELU, lambda run, args: torch.zeros_like(args[0]))
    assert zero.status == "wrong"
    assert run_case(RELU, Acting(lambda run, args: args[0] * 0), QUICK, values).status == "native"


def test_tensors_of_the_host_stay_there() -> None:
    places = []

    class Watching(CpuDevice):
        def upload_all(self, tensors: list[Any]) -> list[Any]:
            places.append(len(tensors))
            return copy_all(tensors, torch.device("cpu"))

    copying = call("aten::copy_", spec(), spec("src", device="cpu"), non_blocking=False)
    assert run_case(copying, Watching(), Options(repeats=0, gradients=False)).status == "native"
    assert places == [2]  # the target and its storage


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_more_accurate_device_is_right(dtype: torch.dtype) -> None:
    wider = torch.float64 if dtype == torch.float32 else torch.float32
    assert run_case(mm(str(dtype)[6:], 64), Accurate({dtype: wider})).status == "native"


def test_arguments_too_large_to_raise_are_compared_with_the_cpu() -> None:
    options = Options(gradients=False, widest=100)
    assert run_case(mm(), Spoiled(in_place(noisy)), options).status == "native"
    result = run_case(mm(), Spoiled(in_place(biased)), options)
    assert result.status == "wrong"
    assert not result.outputs[0].raised


def test_undefined_values_are_skipped_but_their_shape_is_not() -> None:
    configuration = call("aten::empty_like", spec())
    assert run_case(configuration, CpuDevice(), QUICK).status == "skipped"
    assert act(configuration, lambda run, args: run()[:1]).status == "wrong"


def test_a_reference_that_does_not_reproduce_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    from scanner.probe import reference

    runs = iter(range(1, 99))
    counting = {"aten::relu": lambda x: x.relu() + next(runs)}
    monkeypatch.setattr(reference, "SUBSTITUTES", counting)
    result = run_case(RELU, CpuDevice(), QUICK)
    assert (result.status, result.reason) == ("unknown", "the CPU reference is not reproducible")


WINDOW = {"padding": [1, 1], "stride": [1, 1], "dilation": [1, 1]}
LINEAR = call(
    "aten::linear_backward",
    *(spec(shape=(2, 3, 4)), spec("grad_output", (2, 3, 5)), spec("weight", (5, 4))),
    output_mask=[True, True, True],
)
CONVOLUTION = call(
    "aten::_mps_convolution",
    *(spec(shape=(1, 2, 6, 6)), spec("weight", (3, 2, 3, 3))),
    **{"bias": None, "groups": 1, **WINDOW},
)
POOL = call(
    "aten::max_pool2d_backward",
    *(spec("grad_output", (1, 1, 2, 2)), spec(shape=(1, 1, 4, 4))),
    **{**WINDOW, "kernel_size": [2, 2], "stride": [2, 2], "padding": [0, 0], "ceil_mode": False},
)
LSTM = call(
    "aten::lstm_mps_backward",
    *(spec("grad_y", (4, 2, 3)), spec("z_state", (1, 4, 2, 12))),
    *(spec("cell_state_fwd", (1, 4, 2, 3)), spec("input", (4, 2, 5))),
    *(spec("layersOutputs", (1, 4, 2, 3)), spec("hx[0]", (1, 2, 3)), spec("hx[1]", (1, 2, 3))),
    *(spec("params[0]", (12, 5)), spec("params[1]", (12, 3))),
    **{"grad_hy": None, "grad_cy": None, "has_biases": False, "num_layers": 1, "dropout": 0.0},
    **{"train": True, "bidirectional": False, "batch_first": False, "phase": "backward"},
)


@pytest.mark.parametrize("configuration", [LINEAR, CONVOLUTION, POOL, LSTM], ids=lambda c: c.op)
def test_ops_that_only_a_device_has_are_judged_by_what_they_compute(configuration: OpCall) -> None:
    assert run_case(configuration, CpuDevice(), QUICK).status == "native"
    wrong = Spoiled(in_place(biased))
    assert run_case(configuration, wrong, QUICK).status == "wrong"


def test_state_that_a_device_keeps_for_itself_comes_from_its_own_forward() -> None:
    ran = []

    class Mps(CpuDevice):
        """Its forward saves three buffers."""

        def call(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            ran.append((op, [type(arg).__name__ for arg in args]))
            return tuple(torch.full((1,), float(place)) for place in range(6))

    schema = schema_of(LSTM.op)
    tensors = drawn(schema, LSTM, 0).tensors
    given = with_saved(Mps(), schema, LSTM, tensors, torch.device("mps"))
    names = [each.name for each in LSTM.inputs]
    kept = {name: float(given[names.index(name)]) for name in names if "state" in name}
    assert kept == {"z_state": 3.0, "cell_state_fwd": 4.0}
    assert given[names.index("input")] is tensors[names.index("input")]
    flags = ["bool", "int", "float", "bool", "bool", "bool"]
    assert ran == [("aten::_lstm_mps", ["Tensor", "list", "list", *flags])]
    assert with_saved(Mps(), schema, LSTM, tensors, torch.device("cpu")) is tensors


EXACT = [
    call("aten::clone", spec(shape=(9, 9)), memory_format=None),
    call("aten::index_select", spec(shape=(9, 9)), spec("index", (5,), "int64"), dim=0),
    call(
        "aten::where.self",
        spec("condition", (9, 9), "bool"), spec(shape=(9, 9)), spec("other", (9, 9)),
    ),
    call("aten::copy_", spec(shape=(9, 9)), spec("src", (9, 9)), non_blocking=False),
]  # fmt: skip


@pytest.mark.parametrize("configuration", EXACT, ids=lambda c: c.op)
@pytest.mark.parametrize("number", [torch.nan, torch.inf, -torch.inf])
def test_nan_in_what_an_op_only_moves_is_nan_before_it_is_wrong(
    configuration: OpCall, number: float
) -> None:
    def spoil(values: Tensor) -> None:
        values.view(-1)[values.numel() // 2] = number

    result = run_spoiled(configuration, spoil)
    assert (result.status, "nan-appears" in kinds(result)) == ("nan", True)


def test_nan_that_an_op_should_have_moved_vanishes() -> None:
    given = torch.zeros(9, 9)
    given[3, 3], given[5, 5] = torch.nan, torch.inf
    for keeps in ({"nan": 0.0, "posinf": torch.inf}, {"nan": torch.nan, "posinf": 0.0}):
        device = Spoiled(in_place(partial(torch.nan_to_num, **keeps)))
        result = run_case(EXACT[0], device, QUICK, [given])
        assert (result.status, kinds(result)) == ("nan", {"nan-vanishes"})
