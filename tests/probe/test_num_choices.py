"""Results that are not unique: positions among equal values, signs of eigenvectors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from scanner.backends.cpu import CpuDevice
from scanner.probe.execute import run_case
from scanner.probe.invariants import invariants
from scanner.probe.selection import selects_the_same
from tests.probe.num_support import QUICK, Spoiled, call, run_spoiled, spec

TIED = torch.tensor([[1.0, 5.0, 5.0], [4.0, 4.0, 0.0]])


@pytest.mark.parametrize(
    ("op", "output", "attributes", "ours", "theirs", "same"),
    [
        ("aten::argmax", "0", {"dim": 1, "keepdim": False}, [2, 1], [1, 0], True),
        ("aten::argmax", "0", {"dim": 1, "keepdim": False}, [0, 1], [1, 0], False),
        ("aten::argmax", "0", {"dim": None, "keepdim": False}, 2, 1, True),
        ("aten::argmax", "0", {"dim": None, "keepdim": False}, 9, 1, False),
        ("aten::max.dim", "1", {"dim": 1, "keepdim": True}, [[2], [1]], [[1], [0]], True),
        ("aten::sort", "1", {"dim": 1}, [[0, 2, 1], [2, 0, 1]], [[0, 1, 2], [2, 1, 0]], True),
        ("aten::sort", "1", {"dim": 1}, [[0, 1, 1], [2, 0, 1]], [[0, 1, 2], [2, 1, 0]], False),
        (
            "aten::sort.stable",
            "1",
            {"dim": 1, "stable": True},
            [[0, 2, 1], [2, 0, 1]],
            [[0, 1, 2], [2, 0, 1]],
            False,
        ),
        ("aten::gather", "0", {"dim": 1}, [[0]], [[1]], False),
    ],
)
def test_positions_are_judged_by_what_they_select(
    op: str, output: str, attributes: dict[str, object], ours: object, theirs: object, same: bool
) -> None:
    family = op.removeprefix("aten::").partition(".")[0]
    configuration = call(op, spec(shape=(2, 3)), **attributes)
    pair = torch.tensor(ours), torch.tensor(theirs)
    assert selects_the_same(family, configuration, output, TIED, *pair) is same


def test_pooling_positions_count_through_the_window_plane() -> None:
    source = torch.tensor([[[[3.0, 3.0], [1.0, 0.0]]]])
    configuration = call("aten::max_pool2d_with_indices", spec(shape=(1, 1, 2, 2)))
    for ours, same in ((1, True), (2, False)):
        pair = torch.tensor([[[[ours]]]]), torch.tensor([[[[0]]]])
        family = "max_pool2d_with_indices"
        assert selects_the_same(family, configuration, "1", source, *pair) is same


@pytest.mark.parametrize("op", ["aten::_linalg_eigh", "aten::_linalg_svd", "aten::linalg_qr"])
def test_negated_vectors_are_as_right(op: str) -> None:
    class Negating(CpuDevice):
        """Negates the first vector, and what belongs to it."""

        def call(self, name, args, kwargs):
            first, *rest = super().call(name, args, kwargs)
            vectors = rest[0] if name == "aten::_linalg_eigh" else first
            vectors[..., :, 0] *= -1
            if name != "aten::_linalg_eigh":
                rest[-1][..., 0, :] *= -1
            return (first, *rest)

    attributes = {
        "aten::_linalg_eigh": {"UPLO": "L", "compute_v": True},
        "aten::_linalg_svd": {"full_matrices": False, "compute_uv": True, "driver": None},
        "aten::linalg_qr": {"mode": "reduced"},
    }
    configuration = call(op, spec("A", (3, 6, 6)), **attributes[op])
    assert run_case(configuration, Negating(), QUICK).status == "native"


def _first_column(tensor: Tensor) -> None:
    tensor[..., 0] *= 1.01


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("aten::_linalg_eigh", {"UPLO": "L", "compute_v": True}),
        ("aten::_linalg_svd", {"full_matrices": False, "compute_uv": True, "driver": None}),
        ("aten::linalg_qr", {"mode": "reduced"}),
        ("aten::linalg_lu_factor_ex", {"pivot": True, "check_errors": False}),
    ],
)
def test_wrong_factors_are_not(op: str, attributes: dict[str, object]) -> None:
    def change(tensor: Tensor) -> None:
        if tensor.is_floating_point() and tensor.dim() > 1:
            _first_column(tensor)

    result = run_spoiled(call(op, spec("A", (3, 6, 6)), **attributes), change)
    assert result.status == "wrong"


def test_factors_that_are_none_are_wrong_not_an_error() -> None:
    zeroed: Callable[[Tensor], Tensor] = lambda tensor: torch.zeros_like(tensor)  # noqa: E731
    configuration = call(
        "aten::linalg_lu_factor_ex", spec("A", (5, 5)), pivot=True, check_errors=False
    )
    assert run_case(configuration, Spoiled(zeroed), QUICK).status == "wrong"


def test_factors_of_another_kind_are_wrong_not_an_error() -> None:
    configuration = call("aten::linalg_eig", spec(shape=(5, 5)))
    real = Spoiled(lambda tensor: torch.view_as_real(tensor)[..., 0])
    assert run_case(configuration, real, QUICK).status == "wrong"


def test_eigenvalues_are_compared_in_order() -> None:
    matrix = torch.diag(torch.tensor([1.0, 2.0, 3.0]))
    values, vectors = torch.linalg.eig(matrix)
    turned = {"0": values.flip(0), "1": vectors.flip(1)}
    plain = invariants("linalg_eig", {"0": values, "1": vectors}, {})
    other = invariants("linalg_eig", turned, {})
    assert plain is not None
    assert other is not None
    assert all(torch.allclose(plain[name], other[name]) for name in plain)
