"""Over PyTorch's own samples: no false alarm, and no fault that goes unseen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from scanner.backends.cpu import CpuDevice
from scanner.probe.execute import Options, run_case
from scanner.probe.schema import schema_of
from scanner.probe.standards import rounds, standard_of
from scanner.records import OpCall
from tests.probe.num_support import (
    QUICK,
    Accurate,
    Spoiled,
    biased,
    in_place,
    noisy,
    one_nan,
    zeroed_tile,
)

pytest.importorskip("expecttest", reason="PyTorch's samples need it")

from tests.probe.num_samples import samples

pytestmark = pytest.mark.filterwarnings("ignore")

GOOD = {"native", "skipped"}
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
WIDER = {
    torch.float32: torch.float64,
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.complex64: torch.complex128,
}


def told(result: Any, call: OpCall) -> str:
    return f"{call.op} {[spec.shape for spec in call.inputs]}: {result.status} {result.reason}"


def alarms(dtype: torch.dtype, device: CpuDevice, options: Options, *, given: bool) -> list[str]:
    found = []
    for call, values in samples(dtype):
        result = run_case(call, device, options, values if given else None)
        if result.status not in GOOD:
            found.append(told(result, call))
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.int64])
def test_the_cpu_against_itself_raises_no_alarm(dtype: torch.dtype) -> None:
    assert len(samples(dtype)) > 70
    assert alarms(dtype, CpuDevice(), Options(repeats=0), given=False) == []


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_more_accurate_device_raises_no_alarm(dtype: torch.dtype) -> None:
    assert alarms(dtype, Accurate(WIDER), Options(repeats=0), given=True) == []


@pytest.mark.parametrize("dtype", DTYPES)
def test_noise_in_the_last_place_raises_no_alarm(dtype: torch.dtype) -> None:
    device = Spoiled(in_place(noisy))
    rounding = [call for call, _ in samples(dtype) if rounds(schema_of(call.op), call)]
    assert len(rounding) > 30
    results = [(call, run_case(call, device, QUICK)) for call in rounding]
    assert [told(result, call) for call, result in results if result.status not in GOOD] == []


TOO_ROUGH = {(torch.bfloat16, biased, "aten::grid_sampler_2d")}
"""The CPU computes positions in bfloat16 here, and is off by several per cent itself."""


class Harmed(CpuDevice):
    """Applies a fault, and knows whether it changed a value that is compared."""

    def __init__(self, change: Callable[[Tensor], Any]) -> None:
        self._change = change
        self.struck = 0

    def call(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = super().call(op, args, kwargs)
        for tensor in tree_leaves(result):
            floating = isinstance(tensor, Tensor) and tensor.is_floating_point()
            if floating and tensor.numel() and independent(tensor):
                before = tensor.clone()
                in_place(self._change)(tensor)
                differs = (before != tensor) & ~(before.isnan() & tensor.isnan())
                self.struck = max(self.struck, int(before[differs].unique().numel()))
        return result


def independent(tensor: Tensor) -> bool:
    """Whether each element lies alone in memory."""
    return not any(
        step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape, strict=True)
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("change", [biased, zeroed_tile, one_nan], ids=lambda f: f.__name__)
def test_every_fault_that_changes_enough_is_found(
    dtype: torch.dtype, change: Callable[[Tensor], Any]
) -> None:
    # One per cent of bfloat16 is the size of noise: it takes this many values to tell them apart.
    enough = 40 if dtype == torch.bfloat16 and change is biased else 12 if change is biased else 1
    device, struck, missed = Harmed(change), 0, []
    for call, _ in samples(dtype):
        if not standard_of(schema_of(call.op), call).compares_values:
            continue
        if (dtype, change, call.op) in TOO_ROUGH:
            continue
        device.struck = 0
        result = run_case(call, device, Options(repeats=0, gradients=False))
        if device.struck < enough:
            continue
        struck += 1
        if result.status in GOOD:
            missed.append(told(result, call))
    assert struck > 20
    assert missed == []
