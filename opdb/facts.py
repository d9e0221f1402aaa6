"""What is known about one operator in one release, and how the statuses follow from it."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

__all__ = ["Basis", "OpFact", "Support", "qualified", "support"]

Support = Literal["native", "composite", "fallback", "unsupported", "unknown"]

NAMESPACE = "aten::"


class OpFact(msgspec.Struct, frozen=True, kw_only=True):
    """One overload in one release. The first nine fields are those of `opscan db op -f json`."""

    op: str
    """Qualified: `aten::kthvalue.values`."""
    framework: str = "torch"
    version: str
    status: Support
    evidence: Literal["database", "inferred"] | None
    """None only when the status is unknown."""
    native_since: str | None = None
    """First release of the range of releases with an MPS kernel that holds `version`, else of the next such
    range, else of the last one before; None when there is none."""
    fallback_versions: tuple[str, ...] = ()
    """Ranges of releases in which it runs on the CPU without any setting: `1.12.1..2.13.0`."""
    fixed_in: str | None = None
    """First later release in which the status is cured: unsupported becomes anything that runs, fallback becomes
    native or composite."""
    links: tuple[str, ...] = ()
    reason: str
    exists: bool
    registered: Literal["kernel", "fallback", "raises"] | None = None
    """What is registered for the MPS dispatch key itself."""
    key: str = "MPS"
    source: str = ""
    """What was read: wheel and registration block, or YAML file."""
    composite: Literal["implicit", "explicit", "nonfunctional"] | None = None
    calls: str | None = None
    """Overload that the generated composite kernel calls, qualified."""
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

    exists: bool
    registered: str
    """kernel, fallback, raises, or empty."""
    composite: str
    """implicit, explicit, nonfunctional, or none."""
    calls: str
    """Overload that the generated composite kernel calls, or empty."""
    cpu: bool


def qualified(op: str) -> str:
    """`kthvalue` → `aten::kthvalue`; empty stays empty."""
    return f"{NAMESPACE}{op}" if op else ""


def support(op: str, known: Basis, called: tuple[Support, str]) -> tuple[Support, str]:
    """Status and reason of an overload, given those of the overload that its composite kernel calls."""
    if not known.exists:
        return "unknown", "not an operator of this release"
    if known.registered == "kernel":
        return "native", "an MPS kernel is registered"
    if known.registered == "fallback":
        return "fallback", (
            "registered to run on the CPU: inputs are copied to the CPU and results back, whatever the settings"
        )
    if known.registered == "raises":
        return "unsupported", "what is registered for MPS only raises an error"
    if known.composite == "none":
        return "unsupported", _missing(op, known.cpu)
    if known.calls and called[0] in ("fallback", "unsupported"):
        return called[0], f"its composite kernel calls {qualified(known.calls)}: {called[1]}"
    if known.composite == "implicit":
        return "composite", "decomposed into other operators before it reaches MPS"
    return "composite", "a kernel for all backends runs it as calls of other operators"


def _missing(op: str, cpu: bool) -> str:
    raises = f"no kernel is registered for MPS, so {qualified(op)} raises NotImplementedError"
    if cpu:
        return f"{raises}; with PYTORCH_ENABLE_MPS_FALLBACK=1 it runs on the CPU"
    return f"{raises}; the CPU has no kernel of its own either"
