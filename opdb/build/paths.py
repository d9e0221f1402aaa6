"""Which calls of kernels for all backends lead to an op that MPS has no kernel for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from opdb.build.write import Rows
from opdb.facts import Basis, judge

__all__ = ["ELSEWHERE", "leading"]

ELSEWHERE = frozenset(
    {
        # Behind a question whether the tensor is quantized.
        *("dequantize.self", "_empty_affine_quantized"),
        # Behind a question whether it is sparse.
        *("dense_dim", "sparse_dim", "_validate_compressed_sparse_indices"),
        # The CPU's choice among kernels for one op; MPS has another branch.
        *("_slow_conv2d_forward", "_slow_conv2d_forward.output", "_slow_conv2d_backward"),
        *("_slow_conv2d_backward.output_mask", "_slow_conv2d_backward.grad_input"),
        *("slow_conv3d_forward", "slow_conv3d_forward.output", "to_mkldnn"),
        "_scaled_dot_product_flash_attention_for_cpu",
    }
)
"""Ops that a kernel for all backends does not call on dense tensors of MPS."""

_NOT_MADE = frozenset(
    {
        ("select.int", "nonzero"),  # for sparse tensors
        ("dropout", "native_dropout"),  # on other devices, before MPS has a kernel for it
    }
)
"""Calls that are not made on dense tensors of MPS, of ops that others call on such."""


def leading(paths: Rows, ops: Rows, mps: Rows, releases: Iterable[str]) -> Rows:
    """The calls that lead, in any release, to an op that is missing there or runs on the CPU.

    All three as in their tables. A call that is kept is kept for every release that makes it, so
    that one who has seen the call in one release can tell what that says about another.
    """
    kept: set[tuple[str, ...]] = set()
    for release in releases:
        pairs = [fact[:2] for fact, members in paths.items() if release in members]
        kept |= _leading(pairs, _bases(ops, mps, release))
    return {fact: members for fact, members in paths.items() if fact[:2] in kept}


def _bases(ops: Rows, mps: Rows, release: str) -> dict[str, Basis]:
    keys: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for (op, key, function), members in mps.items():
        if release in members:
            keys[op][key] = function
    return {
        op: Basis(
            exists=True,
            registered=keys[op].get("MPS.python") or keys[op].get("MPS", ""),
            composite=composite,
            calls=() if calls == "-" else tuple(calls.split(",")),
            cpu=cpu == "cpu",
            sparse=bool(keys[op].keys() & {"SparseMPS", "SparseCsrMPS"}),
        )
        for (op, composite, calls, cpu), members in ops.items()
        if release in members
    }


def _leading(pairs: Iterable[tuple[str, ...]], bases: Mapping[str, Basis]) -> set[tuple[str, ...]]:
    def basis_of(name: str) -> Basis:
        return bases.get(name, Basis())

    status = {name: judge(name, "MPS", basis_of)[0] for name in bases}
    open_ends = {
        name
        for name in bases
        if status[name] in {"unsupported", "fallback"} and _for_dense(name, bases, frozenset())
    }
    callers: defaultdict[str, set[str]] = defaultdict(set)
    for caller, called in pairs:
        runs = status.get(caller) == "composite" and not bases[caller].registered
        if runs and (caller, called) not in _NOT_MADE:
            callers[called].add(caller)
    kept: set[tuple[str, ...]] = set()
    waiting, seen = list(open_ends), set(open_ends)
    while waiting:
        called = waiting.pop()
        kept |= {(caller, called) for caller in callers[called]}
        waiting += callers[called] - seen
        seen |= callers[called]
    return kept


def _for_dense(name: str, bases: Mapping[str, Basis], seen: frozenset[str]) -> bool:
    """Whether dense tensors may be the ones that the op fails for: the CPU can do it for them.

    What the CPU has no kernel for either is called on sparse or quantized tensors, or on another
    device.
    """
    known = bases.get(name, Basis())
    if name in ELSEWHERE or known.registered in {"kernel", "raises", "decomposition"}:
        return False
    if known.registered == "fallback" or known.composite == "none":
        return known.registered == "fallback" or known.cpu
    return any(
        _for_dense(called, bases, seen | {name}) for called in known.calls if called not in seen
    )
