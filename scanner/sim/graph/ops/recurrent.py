"""LSTM layers and their gradients.

From MPSGraphRNNOps.h: gates in the order [i, f, z, o] after their activations; c = f · c₋₁ + i · z;
h = o · tanh(c). Two directions lie side by side in the last axis of states, the second one's
in the order of the input's time.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Methods, Properties, Unsupported

METHODS = Methods()

_DEFAULTS = {
    "forgetGateLast": 0,
    "inputGateActivation": 3,
    "forgetGateActivation": 3,
    "cellGateActivation": 2,
    "outputGateActivation": 3,
    "activation": 2,
}
"""What is modelled: MPSGraphRNNActivation 2 is tanh, 3 the sigmoid."""


@dataclass(frozen=True)
class _Layer:
    """One direction. T steps of N elements with I features; H is the size of the state."""

    source: Tensor
    """[T, N, I] in the order of processing."""
    recurrent: Tensor
    """[4H, H]"""
    weights: Tensor | None
    """[4H, I]; None when the source is [T, N, 4H] already."""
    bias: Tensor | None
    state: Tensor
    """Initial, [N, H]."""
    cell: Tensor

    def forward(self) -> tuple[Tensor, Tensor, Tensor]:
        """States and cells [T, N, H], gates [T, N, 4H]."""
        given = self.source if self.weights is None else self.source @ self.weights.T
        given = given if self.bias is None else given + self.bias
        state, cell, kept = self.state, self.cell, []
        for step in given:
            gates = _activated(step + state @ self.recurrent.T)
            i, f, z, o = gates.chunk(4, -1)
            cell = f * cell + i * z
            state = o * cell.tanh()
            kept.append((state, cell, gates))
        states, cells, all_gates = (torch.stack(each) for each in zip(*kept, strict=True))
        return states, cells, all_gates

    def backward(self, run: _Run) -> dict[str, Tensor]:
        """Gradients by operand."""
        d_state, d_cell, steps = run.state_gradient, run.cell_gradient, []
        before = torch.cat([self.cell[None], run.cells[:-1]])
        for step in reversed(range(len(self.source))):
            d_state = d_state + run.incoming[step]
            d_gates, d_cell = _step_gradient(
                d_state, d_cell, run.gates[step], run.cells[step], before[step]
            )
            d_state = d_gates @ self.recurrent
            steps.append(d_gates)
        return self._collected(run, torch.stack(steps[::-1]), d_state, d_cell)

    def _collected(
        self, run: _Run, d_gates: Tensor, d_state: Tensor, d_cell: Tensor
    ) -> dict[str, Tensor]:
        output_gates = run.gates.chunk(4, -1)[3]
        states = torch.cat([self.state[None], (output_gates * run.cells.tanh())[:-1]])
        flat = d_gates.flatten(0, 1)
        found = {
            "source": d_gates if self.weights is None else d_gates @ self.weights,
            "recurrent": flat.T @ states.flatten(0, 1),
            "weights": flat.T @ self.source.flatten(0, 1),
            "bias": flat.sum(0),
        }
        return found | {"state": d_state, "cell": d_cell}


@dataclass(frozen=True)
class _Run:
    """What the forward of a direction left, and the gradients that come in."""

    gates: Tensor
    cells: Tensor
    incoming: Tensor
    """Of the states, [T, N, H]."""
    state_gradient: Tensor
    """Of the state after the last step, [N, H]."""
    cell_gradient: Tensor


def _activated(gates: Tensor) -> Tensor:
    i, f, z, o = gates.chunk(4, -1)
    return torch.cat([i.sigmoid(), f.sigmoid(), z.tanh(), o.sigmoid()], -1)


def _step_gradient(
    d_state: Tensor, d_cell: Tensor, gates: Tensor, cell: Tensor, before: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of the gates before their activations, and of the cell before the step."""
    i, f, z, o = gates.chunk(4, -1)
    squashed = cell.tanh()
    d_cell = d_cell + d_state * o * (1 - squashed * squashed)
    d_i, d_f = d_cell * z * i * (1 - i), d_cell * before * f * (1 - f)
    d_z, d_o = d_cell * i * (1 - z * z), d_state * squashed * o * (1 - o)
    return torch.cat([d_i, d_f, d_z, d_o], -1), d_cell * f


class _Directions:
    """The directions of a call: how operands are taken apart and results put together."""

    def __init__(self, call: Arguments) -> None:
        self._call = call
        properties = call.descriptor()
        _check(call, properties)
        self.both = bool(properties.get("bidirectional", False))
        reverse = bool(properties.get("reverse", False))
        if self.both and reverse:
            raise Unsupported("a bidirectional LSTM in reverse")
        self.backwards = (False, True) if self.both else (reverse,)

    def layers(self) -> list[_Layer]:
        """One for each direction."""
        call = self._call
        source = call.tensor(call.selector.split(":")[0])
        recurrent = call.tensor("recurrentWeight")
        recurrents = recurrent.unbind(0) if self.both else (recurrent,)
        shape = (source.shape[1], recurrent.shape[-1] * len(self.backwards))
        states, cells = (
            self.split(self._initial(part, shape, source), -1) for part in ("initState", "initCell")
        )
        weights, biases = self._optional("inputWeight"), self._optional("bias")
        sources = self.split(source, -1) if weights[0] is None else [source] * len(self.backwards)
        return [
            _Layer(self.ordered(sources[number], number), recurrents[number], weights[number],
                   biases[number], states[number], cells[number])
            for number in range(len(self.backwards))
        ]  # fmt: skip

    def _initial(self, part: str, shape: tuple[int, int], like: Tensor) -> Tensor:
        """Host code gives [1, N, H] as well."""
        found = self._call.optional(part)
        return like.new_zeros(shape) if found is None else found.reshape(shape)

    def _optional(self, part: str) -> list[Tensor | None]:
        found = self._call.optional(part)
        if found is None:
            return [None] * len(self.backwards)
        return list(self.split(found, 0))

    def ordered(self, steps: Tensor, number: int) -> Tensor:
        """Steps in the order of processing, or back."""
        return steps.flip(0) if self.backwards[number] else steps

    def split(self, tensor: Tensor, axis: int) -> tuple[Tensor, ...]:
        """One part for each direction."""
        return tensor.chunk(len(self.backwards), axis)

    def runs(self, like: list[_Layer]) -> list[_Run]:
        """What each direction's gradient starts from."""
        call = self._call
        steps = [
            [self.ordered(part, number) for number, part in enumerate(self.split(tensor, -1))]
            for tensor in map(call.tensor, ("zState", "cellOutputFwd", "sourceGradient"))
        ]
        shape = (like[0].state.shape[0], like[0].state.shape[1] * len(self.backwards))
        last = [
            self.split(self._initial(part, shape, like[0].source), -1)
            for part in ("stateGradient", "cellGradient")
        ]
        return [_Run(*parts) for parts in zip(*steps, *last, strict=True)]


def _check(call: Arguments, properties: Properties) -> None:
    for name, default in _DEFAULTS.items():
        if properties.get(name, default) != default:
            raise Unsupported(f"an LSTM with {name} {properties[name]}")
    for part in ("mask", "peephole"):
        if part in call:
            raise Unsupported(f"an LSTM with a {part}")


@METHODS.define(
    "LSTMWithSourceTensor:recurrentWeight:inputWeight:bias:initState:initCell:descriptor:name:"
)
def lstm(call: Arguments) -> list[Tensor]:
    """States; cells with `produceCell`; gates with `training`."""
    directions, properties = _Directions(call), call.descriptor()
    passes = [
        [directions.ordered(steps, number) for steps in layer.forward()]
        for number, layer in enumerate(directions.layers())
    ]
    states, cells, gates = (torch.cat(each, -1) for each in zip(*passes, strict=True))
    wanted = [states]
    if properties.get("produceCell", False):
        wanted.append(cells)
    if properties.get("training", False):
        wanted.append(gates)
    return wanted


@METHODS.define(
    "LSTMGradientsWithSourceTensor:recurrentWeight:sourceGradient:zState:cellOutputFwd:"
    "stateGradient:cellGradient:inputWeight:bias:initState:initCell:mask:peephole:descriptor:name:"
)
def lstm_gradients(call: Arguments) -> list[Tensor]:
    """Gradients of source, recurrent weights, input weights, bias, state, cell; not of nil ones.

    The bias's is [1, 1, 4H], of both directions [1, 1, 8H]: host code squeezes it.
    """
    directions = _Directions(call)
    layers = directions.layers()
    found = [
        layer.backward(run) for layer, run in zip(layers, directions.runs(layers), strict=True)
    ]
    sources = [directions.ordered(each["source"], number) for number, each in enumerate(found)]
    nil = layers[0].weights is None
    results = [torch.cat(sources, -1) if nil else torch.stack(sources).sum(0)]
    recurrents = [each["recurrent"] for each in found]
    results.append(torch.stack(recurrents) if directions.both else recurrents[0])
    for part, name, axis in (
        ("inputWeight", "weights", 0),
        ("bias", "bias", 0),
        ("initState", "state", -1),
        ("initCell", "cell", -1),
    ):
        operand = call.optional(part)
        if operand is not None:
            joined = torch.cat([each[name] for each in found], axis)
            shape = (1, 1, *operand.shape) if part == "bias" else operand.shape
            results.append(joined.reshape(shape))
    return results
