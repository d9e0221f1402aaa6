from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from scanner.sim.graph.methods import Unsupported
from scanner.sim.graph.recording import Descriptor
from tests.sim.graph.calls import compute

LSTM = "LSTMWithSourceTensor:recurrentWeight:inputWeight:bias:initState:initCell:descriptor:name:"
GRADIENTS = (
    "LSTMGradientsWithSourceTensor:recurrentWeight:sourceGradient:zState:cellOutputFwd:"
    "stateGradient:cellGradient:inputWeight:bias:initState:initCell:mask:peephole:descriptor:name:"
)
STEPS, BATCH, FEATURES, STATE = 4, 3, 5, 2


def descriptor(bidirectional: bool, **more: Any) -> Descriptor:
    found = {"bidirectional": bidirectional, "training": True, "produceCell": True}
    return Descriptor("MPSGraphLSTMDescriptor", found | more)


class Torchs:
    """A layer of torch with the operands as MPSGraph takes them."""

    def __init__(self, bidirectional: bool) -> None:
        torch.manual_seed(11)
        self.both = bidirectional
        directions = 1 + bidirectional
        self.layer = torch.nn.LSTM(FEATURES, STATE, bidirectional=bidirectional)
        self.source = torch.randn(STEPS, BATCH, FEATURES, requires_grad=True)
        self.state = torch.randn(directions, BATCH, STATE, requires_grad=True)
        self.cell = torch.randn(directions, BATCH, STATE, requires_grad=True)
        self.output, (self.last, self.last_cell) = self.layer(self.source, (self.state, self.cell))

    def parameters(self, stem: str) -> list[Tensor]:
        suffixes = ("_l0", "_l0_reverse") if self.both else ("_l0",)
        return [getattr(self.layer, stem + suffix) for suffix in suffixes]

    def recurrent(self, of: Any = lambda item: item) -> Tensor:
        parts = [of(item) for item in self.parameters("weight_hh")]
        return torch.stack(parts) if self.both else parts[0]

    def joined(self, stem: str, of: Any = lambda item: item) -> Tensor:
        return torch.cat([of(item) for item in self.parameters(stem)])

    def side_by_side(self, states: Tensor) -> Tensor:
        return torch.cat(list(states), -1)

    def operands(self) -> tuple[Any, ...]:
        bias = self.joined("bias_ih") + self.joined("bias_hh")
        state, cell = self.side_by_side(self.state), self.side_by_side(self.cell)
        given = (self.source, self.recurrent(), self.joined("weight_ih"), bias, state, cell)
        return tuple(item.detach() for item in given)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_states_and_cells_are_torchs(bidirectional: bool) -> None:
    torchs = Torchs(bidirectional)
    found = compute(LSTM, *torchs.operands(), descriptor(bidirectional), outputs=3)
    states, cells, gates = found
    torch.testing.assert_close(states, torchs.output.detach())
    torch.testing.assert_close(cells[-1, :, :STATE], torchs.last_cell[0].detach())
    if bidirectional:
        torch.testing.assert_close(cells[0, :, STATE:], torchs.last_cell[1].detach())
    assert gates.shape == (STEPS, BATCH, 4 * STATE * (1 + bidirectional))


@pytest.mark.parametrize("bidirectional", [False, True])
def test_gradients_are_torchs(bidirectional: bool) -> None:
    torchs = Torchs(bidirectional)
    source, recurrent, weights, bias, state, cell = torchs.operands()
    described = descriptor(bidirectional)
    _, cells, gates = compute(LSTM, *torchs.operands(), described, outputs=3)
    d_output, d_last, d_cell = (
        torch.randn_like(item) for item in (torchs.output, torchs.last, torchs.last_cell)
    )
    torch.autograd.backward(
        [torchs.output, torchs.last, torchs.last_cell], [d_output, d_last, d_cell]
    )
    future = (torchs.side_by_side(d_last), torchs.side_by_side(d_cell))
    found = compute(
        GRADIENTS, source, recurrent, d_output, gates, cells, *future, weights, bias, state, cell,
        None, None, described, outputs=6,
    )  # fmt: skip
    expected = (
        torchs.source.grad,
        torchs.recurrent(lambda item: item.grad),
        torchs.joined("weight_ih", lambda item: item.grad),
        torchs.joined("bias_ih", lambda item: item.grad)[None, None],
        torchs.side_by_side(torchs.state.grad),
        torchs.side_by_side(torchs.cell.grad),
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_one_step_by_hand() -> None:
    """All gates ½ and z = tanh(1): c = ½ · 2 + ½ · tanh(1), h = ½ · tanh(c)."""
    source = torch.tensor([[[0.0, 0, 1, 0]]])
    described = descriptor(False, training=False)
    states, cells = compute(
        LSTM, source, torch.zeros(4, 1), None, None, None, torch.tensor([[2.0]]), described,
        outputs=2,
    )  # fmt: skip
    expected = torch.tensor(1 + 0.5 * 0.7615942)
    torch.testing.assert_close(cells.flatten()[0], expected)
    torch.testing.assert_close(states.flatten()[0], 0.5 * expected.tanh())


def test_initial_states_may_have_one_axis_more() -> None:
    torchs = Torchs(False)
    *given, state, cell = torchs.operands()
    described = descriptor(False)
    states, cells, gates = compute(LSTM, *given, state[None], cell[None], described, outputs=3)
    torch.testing.assert_close(states, torchs.output.detach())
    source, recurrent, weights, bias = given
    found = compute(
        GRADIENTS, source, recurrent, states, gates, cells, state[None], cell[None], weights, bias,
        state[None], cell[None], None, None, described, outputs=6,
    )  # fmt: skip
    assert found[4].shape == found[5].shape == (1, BATCH, STATE)


def test_nil_operands_have_no_gradient() -> None:
    source = torch.randn(STEPS, BATCH, 4 * STATE)
    recurrent = torch.randn(4 * STATE, STATE)
    described = descriptor(False)
    states, cells, gates = compute(
        LSTM, source, recurrent, None, None, None, None, described, outputs=3
    )
    found = compute(
        GRADIENTS, source, recurrent, states, gates, cells, *[None] * 8, described, outputs=2
    )
    assert [item.shape for item in found] == [source.shape, recurrent.shape]


def test_what_is_not_modelled_is_refused() -> None:
    given = (torch.zeros(1, 1, 4), torch.zeros(4, 1), None, None, None, None)
    with pytest.raises(Unsupported, match="forgetGateLast"):
        compute(LSTM, *given, descriptor(False, forgetGateLast=True), outputs=3)
    with pytest.raises(Unsupported, match="in reverse"):
        compute(LSTM, *given, descriptor(True, reverse=True), outputs=3)
