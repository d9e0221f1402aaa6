"""Long sums: what adding in one go may err by, and what a lost term is."""

from __future__ import annotations

import msgspec
import pytest
import torch
from torch import Tensor

from scanner.probe.compare import Context, compare
from scanner.probe.standards import CONTRACTION
from scanner.probe.terms import terms
from scanner.records import OpCall
from tests.probe.num_support import call, spec

TERMS = 32768
IMAGE = spec("input", (2, 16, 16, 16))
KERNEL = spec("weight", (8, 16, 5, 5))
MADE = spec("0", (2, 8, 16, 16))
CONVOLUTION = msgspec.structs.replace(call("aten::convolution", IMAGE, KERNEL), outputs=(MADE,))


@pytest.mark.parametrize(
    ("configuration", "elements", "expected"),
    [
        (call("aten::mm", spec("self", (8, 4096)), spec("mat2", (4096, 8))), 64, 4096),
        # Forward: channels × kernel. Gradient of the weight: batch × image.
        (CONVOLUTION, 2 * 8 * 256, 16 * 25),
        (CONVOLUTION, 8 * 16 * 25, 2 * 256),
        (call("aten::sum", spec("self", (64, 1024))), 1, 65536),
        (call("aten::add.Tensor", spec("self", (1,)), spec("other", (1,))), 1, 1),
    ],
)
def test_the_number_of_terms(configuration: OpCall, elements: int, expected: float) -> None:
    assert terms(configuration, elements) == expected


def matrices() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(8, TERMS, generator=generator), torch.randn(TERMS, 8, generator=generator)


def in_one_go(a: Tensor, b: Tensor) -> Tensor:
    """As a kernel does that has one float32 accumulator for each element."""
    total = torch.zeros(8, 8)
    for left, right in zip(a.T, b, strict=True):
        total += left[:, None] * right
    return total


def passes(device: Tensor, a: Tensor, b: Tensor) -> bool:
    context = Context(terms=float(TERMS))
    right = a.double() @ b.double()
    return compare("0", device, a @ b, right, CONTRACTION, context).result.passed


def test_a_sum_in_one_go_passes_and_a_lost_term_does_not() -> None:
    a, b = matrices()
    added = in_one_go(a, b)
    assert passes(added, a, b)
    assert not passes(added - torch.outer(a[:, 7], b[7]), a, b)
    assert not passes(added * 1.001, a, b)


def test_it_would_fail_if_the_length_were_not_known() -> None:
    a, b = matrices()
    longer = in_one_go(a.repeat(1, 4), b.repeat(4, 1))
    right = 4 * (a.double() @ b.double())
    cpu = right.float()
    short = compare("0", longer, cpu, right, CONTRACTION, Context(terms=1.0))
    known = compare("0", longer, cpu, right, CONTRACTION, Context(terms=4.0 * TERMS))
    assert known.result.passed
    assert not short.result.passed
