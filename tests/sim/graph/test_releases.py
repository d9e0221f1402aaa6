"""Graphs of real releases; needs some that were prepared: `opscan sim prepare torch==2.9.1`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import torch

from scanner.sim import host
from scanner.sim.graph.ops import all_methods
from scanner.sim.prepare.prepared import Prepared
from scanner.sim.prepare.release import list_prepared
from scanner.sim.session import Session

pytestmark = pytest.mark.sim

_SELECTOR = re.compile(rb"\x00((?:[A-Za-z0-9]+:)+name:)\x00")
_OF_THE_RECORDER = {"placeholderWithShape:dataType:name:", "placeholderWithShape:name:"}


def known() -> list[Prepared]:
    return sorted(list_prepared(), key=lambda prepared: prepared.release)


@pytest.mark.parametrize("prepared", known(), ids=lambda prepared: prepared.release)
def test_every_method_that_a_release_can_call_is_modelled(prepared: Prepared) -> None:
    image = prepared.folder / prepared.part("libtorch_cpu.dylib").file
    content = image.read_bytes().replace(b"\0", b"\0\0")
    selectors = {found.decode() for found in _SELECTOR.findall(content)}
    assert len(selectors) > 80
    assert selectors - _OF_THE_RECORDER <= all_methods().keys()


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    found = {prepared.release: prepared for prepared in list_prepared()}
    if "2.9.1" not in found:
        pytest.skip("torch 2.9.1 is not prepared")
    with host.open(found["2.9.1"], macos="15.5") as opened:
        yield opened


SQUARE = torch.tensor([[2.0, 1.0], [1.0, 3.0]])


@pytest.mark.parametrize(
    ("op", "arguments", "expected"),
    [
        ("mm", (SQUARE, SQUARE.t()), torch.tensor([[5.0, 5.0], [5.0, 10.0]])),
        ("addmm", (torch.tensor([1.0, -1.0]), SQUARE, SQUARE), torch.tensor([[6, 4], [6, 9.0]])),
        ("nanmedian", (torch.tensor([5.0, float("nan"), 1.0, 3.0]),), torch.tensor(3.0)),
        ("sum.dim_IntList", (SQUARE, [1], True), torch.tensor([[3.0], [4.0]])),
        ("ones", ([2],), torch.ones(2)),
        ("cat", ([SQUARE, SQUARE[:1]],), torch.cat([SQUARE, SQUARE[:1]])),
        ("linalg_inv_ex", (SQUARE,), torch.tensor([[0.6, -0.2], [-0.2, 0.4]])),
    ],
)
def test_values_of_graphs(
    session: Session, op: str, arguments: tuple[object, ...], expected: torch.Tensor
) -> None:
    """An expanded bias, a transposed operand, a destination larger than its result, kernels."""
    device = {"device": "mps"} if op == "ones" else {}
    call = session.call(f"aten::{op}", arguments, device)
    assert call.outcome == "native-graph", call.message
    found = session.download(call.outputs[0]).torch()
    torch.testing.assert_close(found, expected)
