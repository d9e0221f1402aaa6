"""Holds what the simulator computed against the CPU, for `sim_sweep.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

__all__ = ["Pair", "compared", "flat", "in_double", "tupled"]

Pair = tuple[torch.Tensor, torch.Tensor]
"""What the release computed, and what the CPU did."""
_TOLERANCE = {torch.float16: (3e-3, 1e-3), torch.bfloat16: (2e-2, 8e-3)}
_SINGLE = (2e-4, 2e-5)
_CHOICES = frozenset({"sort", "topk", "kthvalue", "mode", "median", "max", "min"})


def compared(name: str, args: Sequence[Any], pairs: list[Pair], wide: list[Any] | None) -> str:
    """`agrees`; `as good` (other order of ties, other signs of vectors); `closer` to double than
    the CPU; or what differs. `wide` are the results in double, where there are any.
    """
    worst = "agrees"
    for place, (ours, theirs) in enumerate(pairs):
        if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
            got, expected = (f"{t.dtype} {list(t.shape)}" for t in (ours, theirs))
            return f"metadata[{place}]: {got} for {expected}"
        true = wide[place] if wide is not None and place < len(wide) else None
        found = _compared_one(ours, theirs, true)
        if found not in ("agrees", "closer") and _as_good(name, args, pairs):
            return "as good"
        if found not in ("agrees", "closer"):
            return f"differs[{place}] {found}"
        worst = found if found == "closer" else worst
    return worst


def in_double(function: Any, args: Any, kwargs: Any) -> list[Any] | None:
    """What the CPU computes in double; None where it cannot."""
    try:
        return flat(tupled(function(*_map(args), **_map(kwargs))))
    except Exception:
        return None


def tupled(value: Any) -> Any:
    """One result as a tuple of one."""
    return value if isinstance(value, tuple | list) else (value,)


def flat(values: Any) -> list[Any]:
    """The tensors of nested results, in order."""
    return [
        leaf for leaf in torch.utils._pytree.tree_leaves(list(values)) if hasattr(leaf, "shape")
    ]


def _map(values: Any) -> Any:
    return torch.utils._pytree.tree_map(_doubled, values)


def _doubled(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_complex():
        return value.to(torch.complex128)
    return value.double() if value.is_floating_point() else value


def _compared_one(ours: torch.Tensor, theirs: torch.Tensor, true: Any) -> str:
    exact = not (theirs.is_floating_point() or theirs.is_complex())
    relative, absolute = (0, 0) if exact else _TOLERANCE.get(theirs.dtype, _SINGLE)
    a, b = _wide(ours), _wide(theirs)
    near = torch.isclose(a, b, relative, absolute, equal_nan=not exact)
    if bool(near.all()):
        return "agrees"
    text = f"in {int((~near).sum())} of {a.numel()}"
    if not exact and true is not None and true.shape == a.shape:
        errors = [_largest(t - true) for t in (a, b)]
        if errors[0] <= errors[1] and torch.equal(a.isfinite(), b.isfinite()):
            return "closer"
        text += f" (from double: {errors[0]:.3g}, the CPU {errors[1]:.3g})"
    at = tuple((~near).nonzero()[0].tolist())
    return f"{text}, first at {at}: {a[at].item()} for {b[at].item()}"


def _largest(difference: torch.Tensor) -> float:
    return float(difference.abs().nan_to_num().max())


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor


def _as_good(name: str, args: Sequence[Any], pairs: list[Pair]) -> bool:
    """Whether results that are not unique are right all the same."""
    got = [ours for ours, _ in pairs]
    if name in _CHOICES and len(got) >= 2:
        return _chosen(name, args, pairs)
    if name == "_linalg_svd":
        u, s, vh = map(_wide, got)
        k = s.shape[-1]
        return _near((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], args[0])
    if name == "_linalg_eigh":
        w, v = map(_wide, got)
        halves = (args[0].tril() + args[0].tril(-1).mH, args[0].triu() + args[0].triu(1).mH)
        return any(_near((v * w.unsqueeze(-2)) @ v.mH, half) for half in halves)
    return False


def _chosen(name: str, args: Sequence[Any], pairs: list[Pair]) -> bool:
    """The CPU's values, at indices that hold them."""
    (values, expected), (indices, _) = pairs[:2]
    place = 2 if name in ("topk", "kthvalue") else 1
    dim = args[place] if len(args) > place and type(args[place]) is int else -1
    if indices.dim() < args[0].dim():
        values, expected, indices = (t.unsqueeze(dim) for t in (values, expected, indices))
    picked = args[0].gather(dim, indices) if args[0].dim() else args[0]
    return torch.equal(values, expected) and torch.equal(picked, values)


def _near(made: torch.Tensor, source: torch.Tensor) -> bool:
    wide = _wide(source)
    return torch.allclose(made.to(wide.dtype), wide, 1e-4, 1e-4 * float(wide.abs().max() + 1))
