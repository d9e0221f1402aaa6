"""Factorisations are unique up to signs or phases: what is compared is what they factor.

Eigenvectors and singular vectors may be negated, so each is judged through the product that gives
the matrix back, together with the values, which are unique.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

__all__ = ["invariants", "unique_outputs"]

Named = dict[str, Tensor]
Invariant = Callable[[Named, Mapping[str, Any]], Named]


def _eigh(out: Named, _: Mapping[str, Any]) -> Named:
    values, vectors = out["0"], out.get("1")
    if vectors is None or not vectors.numel():
        return {"eigenvalues": values}
    product = (vectors * values.unsqueeze(-2).to(vectors.dtype)) @ vectors.mH
    return {"eigenvalues": values, "V·diag(L)·Vᴴ": product}


def _eig(out: Named, _: Mapping[str, Any]) -> Named:
    values, vectors = out["0"], out.get("1")
    order = values.real.argsort(-1)
    named = {"sorted eigenvalues": values.gather(-1, order)}
    if vectors is None or not vectors.numel():
        return named
    product = (vectors * values.unsqueeze(-2)) @ torch.linalg.inv(vectors)
    return {**named, "V·diag(L)·V⁻¹": product}


def _svd(out: Named, _: Mapping[str, Any]) -> Named:
    left, values, right = out["0"], out["1"], out["2"]
    if not left.numel() or not right.numel():
        return {"singular values": values}
    count = values.shape[-1]
    scaled = left[..., :count] * values.unsqueeze(-2).to(left.dtype)
    return {"singular values": values, "U·diag(S)·Vᴴ": scaled @ right[..., :count, :]}


def _qr(out: Named, _: Mapping[str, Any]) -> Named:
    left, right = out["0"], out["1"]
    if not left.numel():
        return {"|R|": right.abs()}
    return {"Q·R": left @ right, "Qᴴ·Q": left.mH @ left}


def _geqrf(out: Named, _: Mapping[str, Any]) -> Named:
    factor, tau = out.get("0", out.get("a")), out.get("1", out.get("tau"))
    assert factor is not None
    assert tau is not None
    columns = min(factor.shape[-2:])
    basis = torch.linalg.householder_product(factor[..., :columns], tau)
    return {"Q·R": basis @ factor.triu()[..., :columns, :]}


def _lu_factor(out: Named, _: Mapping[str, Any]) -> Named:
    permutation, lower, upper = torch.lu_unpack(out["0"], out["1"])
    return {"P·L·U": permutation.to(lower.dtype) @ lower @ upper}


def _lu(out: Named, _: Mapping[str, Any]) -> Named:
    if not out["0"].numel():
        return {"L·U": out["1"] @ out["2"]}
    return {"P·L·U": out["0"] @ out["1"] @ out["2"]}


_INVARIANTS: dict[str, Invariant] = {
    "_linalg_eigh": _eigh,
    "linalg_eigh": _eigh,
    "linalg_eig": _eig,
    "_linalg_eigvals": _eig,
    "linalg_eigvals": _eig,
    "_linalg_svd": _svd,
    "linalg_svd": _svd,
    "linalg_qr": _qr,
    "geqrf": _geqrf,
    "linalg_lu_factor": _lu_factor,
    "linalg_lu_factor_ex": _lu_factor,
    "linalg_lu": _lu,
}

_UNIQUE: dict[str, frozenset[str]] = {
    "_linalg_eigh": frozenset({"0"}),
    "linalg_eigh": frozenset({"0"}),
    "linalg_eig": frozenset({"0"}),
    "_linalg_svd": frozenset({"1"}),
    "linalg_svd": frozenset({"1"}),
    "linalg_qr": frozenset(),
    "geqrf": frozenset(),
}
"""Outputs whose gradient does not depend on the choice of sign or phase."""


def invariants(family: str, outputs: Named, given: Mapping[str, Any]) -> Named | None:
    """What to compare in place of the outputs, or None when they are unique themselves.

    Products are formed in double precision, so that they add no error of their own.
    """
    function = _INVARIANTS.get(family)
    if function is None:
        return None
    return function({name: _wide(tensor) for name, tensor in outputs.items()}, given)


def unique_outputs(family: str) -> frozenset[str] | None:
    """Outputs through which gradients may be taken; None for all."""
    return _UNIQUE.get(family)


def _wide(tensor: Tensor) -> Tensor:
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor
