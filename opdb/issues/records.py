"""What is written down about one known issue."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

__all__ = ["Confidence", "Effect", "Issue", "IssueFile"]

Effect = Literal[
    "wrong-values",
    "wrong-gradients",
    "nan",
    "crash",
    "hang",
    "unsupported",
    "fallback",
    "slow",
    "memory",
]
"""What happens: `unsupported` raises an error, `crash` and `hang` end or stop the process."""

Confidence = Literal["verified", "stated", "inferred", "unverified"]
"""How the ranges are known.

`verified`: the release's own code was read or executed on both sides of each end. `stated`: the
thread, the release notes or the maintainers name the releases. `inferred`: from the date of the
fix. `unverified`: one release is known to be affected, the ends are not.
"""


class Issue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way in which releases differ from what they should compute."""

    id: str
    """`addcmul-strided-output`; stays for ever."""
    title: str
    """What goes wrong, as a sentence without a full stop that may follow "aten::x: "."""
    ops: tuple[str, ...]
    """`mm`: its overloads and variants; `add_`: the in-place ones; `add.Tensor`: only that; `*`:
    every op that meets such a tensor."""
    effect: Effect
    condition: str = ""
    """Which configurations: see `opdb.issues.condition`. Empty is all of them."""
    unseen: str = ""
    """What must hold besides, and a configuration does not show: "an element is NaN". An issue that
    depends on it is a note and no verdict."""
    torch: tuple[str, ...]
    """Affected releases, any of these version specifiers: `<2.4`, `>=2.5,<2.5.1`."""
    macos: tuple[str, ...] = ()
    """Affected systems likewise; empty is all."""
    chips: tuple[str, ...] = ()
    """Affected families, `M1`; empty is all."""
    evidence: Literal["database", "simulated", "issue"] = "issue"
    confidence: Confidence = "unverified"
    fallback_helps: bool = False
    """Whether PYTORCH_ENABLE_MPS_FALLBACK=1 avoids it. Checks inside kernels: it does not."""
    fixed_in: str | None = None
    """First release that is right, on every system or the newest."""
    workaround: str = ""
    """What the user can write instead, as a sentence."""
    links: tuple[str, ...] = ()
    since: str = ""
    """Day it was recorded, 2026-11-30."""
    note: str = ""
    """What else the evidence says: how a range was found, what is doubtful."""
    hits: tuple[str, ...]
    """Configurations that it applies to, as `opdb.issues.calls` spells them. The first one is small
    enough to be run on a device, to confirm the issue there."""
    misses: tuple[str, ...] = ()
    """Configurations of the same ops that it spares. Empty only without a condition."""
    reports: tuple[str, ...] = ()
    """Ids of the collected bug reports that it stands for."""


class IssueFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file: a family of issues."""

    issue: tuple[Issue, ...]
    constants: dict[str, Any] = {}
    """Values that the conditions of this file name."""
