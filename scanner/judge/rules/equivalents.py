"""Rewrites of unsupported calls; each is proven equal on the CPU by a test, gradients included."""

from __future__ import annotations

from dataclasses import dataclass

from scanner.judge.interface import Knowledge

__all__ = ["EQUIVALENTS", "Equivalent", "equivalent_for"]


@dataclass(frozen=True, kw_only=True)
class Equivalent:
    """Another way to compute the same."""

    call: str
    """What the user probably wrote."""
    instead: str
    """What gives the same result."""
    ops: tuple[str, ...]
    """Overloads that the rewrite dispatches, forward and backward."""
    defaults: tuple[tuple[str, str], ...] = ()
    """Arguments of the call that may be left out."""


EQUIVALENTS = {
    "aten::_cdist_backward": Equivalent(
        call="torch.cdist(x1, x2)",
        instead="(x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(dim=-1)",
        ops=(
            "aten::div.Tensor",
            "aten::eq.Scalar",
            "aten::linalg_vector_norm",
            "aten::masked_fill_.Scalar",
            "aten::mul.Tensor",
            "aten::neg",
            "aten::sub.Tensor",
            "aten::sum.dim_IntList",
        ),
    ),
    "aten::channel_shuffle": Equivalent(
        call="torch.channel_shuffle(x, groups)",
        instead="x.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)",
        ops=("aten::view",),
    ),
    "aten::hardshrink": Equivalent(
        call="torch.nn.functional.hardshrink(x, lambd)",
        instead="x.masked_fill(x.abs() <= lambd, 0)",
        ops=("aten::le.Scalar",),
        defaults=(("lambd", "0.5"),),
    ),
    "aten::heaviside": Equivalent(
        call="torch.heaviside(x, values)",
        instead="torch.where(x == 0, values, (x > 0).to(x.dtype))",
        ops=("aten::eq.Scalar", "aten::gt.Scalar", "aten::where.self"),
    ),
    "aten::isneginf": Equivalent(
        call="torch.isneginf(x)", instead="x == -torch.inf", ops=("aten::eq.Scalar",)
    ),
    "aten::isposinf": Equivalent(
        call="torch.isposinf(x)", instead="x == torch.inf", ops=("aten::eq.Scalar",)
    ),
    "aten::kthvalue": Equivalent(
        call="torch.kthvalue(x, k, dim).values",
        instead="x.sort(dim).values.select(dim, k - 1)",
        ops=("aten::scatter.src",),
        defaults=(("dim", "-1"),),
    ),
    "aten::rsub": Equivalent(
        call="torch.rsub(x, other)", instead="other - x", ops=("aten::neg", "aten::sub.Tensor")
    ),
    "aten::take": Equivalent(
        call="torch.take(x, index)",
        instead="x.reshape(-1)[index]",
        ops=("aten::index.Tensor", "aten::view"),
    ),
    "aten::vdot": Equivalent(
        call="torch.vdot(x, y)",
        instead="(x.conj() * y).sum(dtype=x.dtype)",
        ops=("aten::mul.Tensor",),
    ),
}
"""Op without overload → its rewrite."""


def equivalent_for(op: str, release: str, knowledge: Knowledge) -> Equivalent | None:
    """The rewrite for an op, if every op that it dispatches runs on MPS in that release."""
    found = EQUIVALENTS.get(op.split(".", 1)[0])
    if found is None:
        return None
    statuses = {knowledge.lookup(each, release).status for each in found.ops}
    return found if statuses <= {"native", "composite"} else None
