"""What is known about one operator in one release, and how its status follows from that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

__all__ = ["Basis", "OpFact", "Support", "judge", "plain", "qualified", "served_on_cpu"]

Support = Literal["native", "composite", "fallback", "unsupported", "unknown"]

_NAMESPACE = "aten::"


class OpFact(msgspec.Struct, frozen=True, kw_only=True):
    """One overload in one release."""

    op: str
    """Qualified: `aten::kthvalue.values`."""
    framework: str = "torch"
    version: str
    status: Support
    evidence: Literal["database", "inferred"] | None
    """`database`: from the release's own library; `inferred`: from the YAML of an installed torch
    that opdb does not know. None only when the status is unknown."""
    native_since: str | None = None
    """First release of the range with an MPS kernel that holds `version`, else of the next such
    range, else of the last one before; None when there is none."""
    fallback_versions: tuple[str, ...] = ()
    """Ranges of releases in which it runs on the CPU without any setting: `1.12.1..2.13.0`; a range
    that still holds in the newest known release is open: `1.12.1..`."""
    fixed_in: str | None = None
    """First later release that cures the status: unsupported runs, a fallback leaves the CPU."""
    links: tuple[str, ...] = ()
    reason: str
    exists: bool
    registered: Literal["kernel", "fallback", "raises", "decomposition"] | None = None
    """What is registered for the dispatch key itself; a decomposition is written in Python."""
    key: str = "MPS"
    source: str = ""
    """What was read: a wheel's library, or a YAML file."""
    composite: Literal["implicit", "explicit", "nonfunctional", "raises"] | None = None
    """Kernel for all backends; `raises` when it only raises an error."""
    calls: tuple[str, ...] = ()
    """Overloads that the kernel for all backends calls whatever its arguments are, qualified."""
    leads: dict[str, Literal["always", "maybe"]] = {}
    """Of a composite op: overloads that its kernel calls, always or for some arguments, and that
    lead to one without an MPS kernel in this or another release; qualified."""
    cpu: bool = False
    """Whether the CPU has a kernel that a fallback could run."""
    group: str | None = None
    """Functional overload of the same operator, qualified."""
    variant: Literal["functional", "inplace", "out", "mutable"] | None = None
    is_view: bool = False
    """A result aliases an argument that is not written to."""

    @property
    def inplace(self) -> bool:
        """Whether it writes to its first argument and returns it."""
        return self.variant == "inplace"


class Basis(NamedTuple):
    """What a status is derived from."""

    exists: bool = False
    registered: str = ""
    """kernel, fallback, raises, decomposition, or empty."""
    composite: str = "none"
    """implicit, explicit, nonfunctional, raises, or none."""
    calls: tuple[str, ...] = ()
    """Overloads that a composite kernel calls whatever happens, plain names."""
    cpu: bool = False
    sparse: bool = False
    """Whether a sparse dispatch key of MPS has a kernel."""


def plain(op: str) -> str:
    """An overload's name without namespace and without `.default`.

    Takes `aten::x.y`, `aten.x.y`, `torch.ops.aten.x.default`, `x`. Other namespaces are kept:
    `prims::mul`.
    """
    name = op.strip().removeprefix("torch.ops.")
    for prefix in (_NAMESPACE, "aten."):
        name = name.removeprefix(prefix)
    return name.removesuffix(".default")


def qualified(name: str) -> str:
    """`kthvalue` → `aten::kthvalue`; a name with a namespace and an empty one stay as they are."""
    return f"{_NAMESPACE}{name}" if name and "::" not in name else name


def judge(
    name: str, key: str, basis_of: Callable[[str], Basis], seen: frozenset[str] = frozenset()
) -> tuple[Support, str]:
    """Status and reason of an overload under a dispatch key.

    The dispatcher's order: the key's own kernel, then a kernel for all backends, then the key's
    catch-all. A kernel for all backends works only as far as the operators that it always calls do.
    """
    known = basis_of(name)
    if not known.exists:
        return "unknown", "not an operator of this release"
    if known.registered:
        return _REGISTERED[known.registered]
    if known.composite == "raises":
        return "unsupported", "the only kernel is one for all backends that raises an error"
    if known.composite == "none":
        return "unsupported", _missing(qualified(name), key, known.cpu)
    for worst in ("unsupported", "fallback"):
        for called in _dense(known, key, basis_of):
            if called in seen:
                continue
            status, reason = judge(called, key, basis_of, seen | {name})
            if status == worst:
                return status, f"its kernel always calls {qualified(called)}; {reason}"
    return "composite", _COMPOSITE[known.composite]


def served_on_cpu(
    fact: OpFact, lookup: Callable[[str, str], OpFact], seen: frozenset[str] = frozenset()
) -> bool:
    """Whether nothing that stops an op, itself or below a composite kernel, stays unserved by the
    catch-all that the fallback variable installs."""
    if fact.status != "unsupported":
        return True
    if fact.registered or fact.composite == "raises":
        return False
    if fact.composite is None:
        return fact.cpu
    return all(
        served_on_cpu(lookup(called, fact.version), lookup, seen | {fact.op})
        for called in fact.calls
        if called not in seen | {fact.op}
    )


def _dense(known: Basis, key: str, basis_of: Callable[[str], Basis]) -> list[str]:
    """Overloads that a kernel for all backends always calls on dense tensors, for all we know.

    One that only a sparse key has a kernel for is called on sparse tensors that the kernel makes.
    """
    if key != "MPS":
        return []
    called = ((name, basis_of(name)) for name in known.calls)
    sparse = known.composite == "explicit"
    return [name for name, one in called if one.registered or not (sparse and one.sparse)]


_REGISTERED: dict[str, tuple[Support, str]] = {
    "kernel": ("native", "a kernel is registered"),
    "fallback": (
        "fallback",
        "registered to run on the CPU whatever the settings: inputs are copied there, results back",
    ),
    "raises": ("unsupported", "what is registered only raises an error"),
    "decomposition": (
        "composite",
        "torch registers a decomposition for MPS in Python, which calls other operators",
    ),
}
_COMPOSITE = {
    "implicit": "decomposed into other operators before a device is chosen",
    "explicit": "a kernel for all backends calls other operators",
    "nonfunctional": "a kernel for all backends calls another variant of the operator",
}


def _missing(op: str, key: str, cpu: bool) -> str:
    raises = f"no kernel is registered for {key}, so {op} raises NotImplementedError"
    if key != "MPS":
        return raises
    if cpu:
        return f"{raises}; with PYTORCH_ENABLE_MPS_FALLBACK=1 it runs on the CPU"
    return f"{raises}; PYTORCH_ENABLE_MPS_FALLBACK=1 does not help, the CPU has no kernel either"
