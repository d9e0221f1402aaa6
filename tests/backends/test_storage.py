from __future__ import annotations

import pytest
import torch

from scanner.backends.storage import copy_all

CPU = torch.device("cpu")
BASE = torch.arange(24, dtype=torch.float32)


def layout(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset()


@pytest.mark.parametrize(
    "tensor",
    [
        BASE,
        BASE[3:],
        BASE.view(4, 6).t(),
        BASE[:1].expand(5, 1),
        BASE.as_strided((4, 4), (1, 1), 2),
        BASE.view(1, 2, 3, 4).to(memory_format=torch.channels_last),
        BASE[::2][1:],
        torch.tensor(3),
        torch.empty(0, 3),
        torch.arange(5, dtype=torch.bfloat16)[1:],
        torch.tensor([True, False]),
    ],
    ids=lambda tensor: f"{tuple(tensor.shape)}/{tensor.stride()}+{tensor.storage_offset()}",
)
def test_layout_and_values_survive(tensor: torch.Tensor) -> None:
    (copy,) = copy_all([tensor], CPU)
    assert layout(copy) == layout(tensor)
    assert torch.equal(copy, tensor)
    assert copy.untyped_storage().nbytes() == tensor.untyped_storage().nbytes()
    assert copy.data_ptr() == 0 or copy.data_ptr() != tensor.data_ptr()


def test_values_outside_the_view_survive() -> None:
    (copy,) = copy_all([BASE[3:5]], CPU)
    assert torch.equal(copy.as_strided((24,), (1,), 0), BASE)


def test_aliases_alias_each_other_and_nothing_else() -> None:
    base = torch.zeros(6)
    other = torch.zeros(6)
    whole, half, apart = copy_all([base, base[3:], other], CPU)
    half.fill_(1)
    assert whole.tolist() == [0, 0, 0, 1, 1, 1]
    assert not apart.any()
    assert not base.any()


def test_one_storage_under_two_dtypes() -> None:
    base = torch.zeros(2)
    floats, ints = copy_all([base, base.view(torch.int32)], CPU)
    ints[0] = 0x3F800000
    assert floats.tolist() == [1.0, 0.0]


def test_lazy_bits_survive() -> None:
    base = torch.tensor([1 + 2j, 3 - 4j])
    conjugate, imaginary = copy_all([base.conj(), base.conj().imag], CPU)
    assert conjugate.is_conj()
    assert conjugate.tolist() == [1 - 2j, 3 + 4j]
    assert imaginary.is_neg()
    assert imaginary.tolist() == [-2.0, 4.0]


def test_a_parameter_comes_out_as_a_plain_leaf() -> None:
    (copy,) = copy_all([torch.nn.Parameter(torch.ones(2))], CPU)
    assert not copy.requires_grad
    assert copy.is_leaf
    assert type(copy) is torch.Tensor


def test_sparse_tensors_are_copied_by_value() -> None:
    sparse = torch.eye(3).to_sparse()
    (copy,) = copy_all([sparse], CPU)
    assert copy.layout is torch.sparse_coo
    assert torch.equal(copy.to_dense(), torch.eye(3))
