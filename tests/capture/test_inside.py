"""Composite kernels are followed call by call, for the arguments they are given."""

import pytest
import torch

from opdb.closure import MORE
from scanner.capture.inside import Inside
from scanner.capture.placement import Placement
from scanner.capture.recorder import Recorder

PINV, EIGH, SVD = "aten::linalg_pinv.atol_rtol_tensor", "aten::linalg_eigh", "aten::linalg_svd"


def recorded(work, device="cpu"):
    recorder = Recorder(lambda _phase: None, Placement(torch.device(device)))
    with recorder:
        result = work()
    return {call.op: call.inner for call in recorder.calls()}, result


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("hermitian", [True, False])
def test_arguments_decide_what_is_called(device, hermitian):
    matrix = torch.eye(3, device=device)
    seen, result = recorded(lambda: torch.linalg.pinv(matrix, hermitian=hermitian), device)
    inner = seen[PINV]
    assert (EIGH in inner[PINV], SVD in inner.get("aten::svd", ())) == (hermitian, not hermitian)
    assert all(MORE not in calls for calls in inner.values())
    if hermitian:
        assert inner[EIGH] == ("aten::_linalg_eigh",)
    if device == "cpu":
        assert torch.allclose(result, torch.eye(3))


def test_nothing_below_an_op_that_cannot_matter_is_kept():
    seen, _ = recorded(lambda: torch.eye(3) @ torch.ones(3))
    assert set(map(len, seen.values())) == {0}


def test_a_part_without_a_kernel_for_the_tensor_leaves_the_whole_op_to_its_own():
    """There is a meta kernel of `cummax` and none of the helper that its composite calls."""
    seen, (values, _) = recorded(lambda: torch.ones(3, device="meta").cummax(0), "meta")
    assert values.shape == (3,)
    assert "aten::_cummax_helper" in seen["aten::cummax"]["aten::cummax.out"]
    assert seen["aten::cummax"]["aten::cummax"][-1] == MORE


def test_what_the_op_raises_comes_out():
    with pytest.raises(RuntimeError, match="must be batches of square matrices"):
        recorded(lambda: torch.linalg.pinv(torch.ones(2, 3), hermitian=True))


def test_an_op_that_writes_to_its_arguments_is_not_run_twice():
    values, places = torch.zeros(3), torch.zeros(3, dtype=torch.int32)
    inside = Inside()
    with pytest.raises(RuntimeError):
        inside.run(
            torch.ops.aten.cummax.out,
            (torch.ones(3), 0),
            {"values": values, "indices": places},
        )
    assert inside.calls["aten::cummax.out"][MORE] is None
