"""Arguments followed through forward code to the layer that fixes their shape."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from scanner.locate.inference.layers import STATE, Use, first_layer, first_use

F = nn.functional


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)

    def forward(self, other: torch.Tensor, data: torch.Tensor) -> torch.Tensor:
        return other + self.first(data.float())


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Linear(9, 9)
        self.embed = nn.Embedding(10, 3)
        self.inner = Inner()
        self.blocks = nn.ModuleList([nn.Conv2d(3, 3, 1), nn.Conv2d(4, 4, 1)])
        self.table = nn.ModuleDict({"a": nn.GRU(5, 6)})
        self.weight = nn.Parameter(torch.zeros(7, 8))
        self.stack = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(2, 2)))
        self.attn = nn.MultiheadAttention(4, 1)

    def forward(
        self,
        ids: torch.Tensor,
        nested: torch.Tensor,
        looped: torch.Tensor,
        keyed: torch.Tensor,
        multiplied: torch.Tensor,
        stacked: torch.Tensor,
        aliased: torch.Tensor,
        state: torch.Tensor,
        mask: torch.Tensor,
        helped: torch.Tensor,
        functional: torch.Tensor,
        sized: torch.Tensor,
    ) -> object:
        a = self.embed(ids)
        b = self.inner(a, data=nested * 2)
        for index, block in enumerate(self.blocks):
            looped = block(looped) + index
        c = self.table["a"](keyed, state)
        d = multiplied @ self.weight
        e = self.stack(stacked)
        layer = self.blocks[1]
        other = aliased.view(aliased.size(0), -1)
        f = layer(other)
        g = self.attn(a, a, a, attn_mask=mask)
        h = self.help(helped)
        i = F.linear(functional, self.weight)
        return a, b, looped, c, d, e, f, g, h, i, self.unused(torch.ones(sized.shape))

    def help(self, given: torch.Tensor) -> torch.Tensor:
        return self.blocks[0](given.unsqueeze(1))


MODEL = Outer()


@pytest.mark.parametrize(
    ("parameter", "use"),
    [
        ("ids", Use(MODEL.embed)),
        ("nested", Use(MODEL.inner.first)),
        ("looped", Use(MODEL.blocks[0])),
        ("keyed", Use(MODEL.table["a"])),
        ("state", Use(MODEL.table["a"], STATE)),
        ("multiplied", Use(MODEL.weight, "matmul")),
        ("stacked", Use(MODEL.stack[1][0])),
        ("aliased", Use(MODEL.blocks[1])),
        ("mask", None),
        ("helped", Use(MODEL.blocks[0])),
        ("functional", Use(MODEL.weight, "linear")),
        ("sized", None),
    ],
)
def test_first_use(parameter: str, use: Use | None) -> None:
    found = first_use(MODEL, parameter)
    if use is None:
        assert found is None
    else:
        assert found is not None
        assert found.layer is use.layer
        assert found.function == use.function


def test_methods_and_other_callables() -> None:
    found = first_use(MODEL, "given", "help")
    assert found is not None
    assert found.layer is MODEL.blocks[0]
    assert first_use(torch.sin, "x") is None


def test_first_layer() -> None:
    found = first_layer(MODEL)
    assert found is not None
    assert found.layer is MODEL.unused
    assert first_layer(nn.Sequential(nn.ReLU())) is None
