"""How fixes are tested: code before and after."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from scanner.fix.mend import Mended, Mender
from scanner.records import Finding
from scanner.source.work import checker_for

__all__ = ["assert_fixed", "mend", "nothing_accepted"]


def nothing_accepted(findings: Sequence[Finding], _: str) -> list[bool]:
    return [False] * len(findings)


def mend(text: str, *, unsafe: bool = True) -> Mended:
    return Mender(checker_for(()), unsafe=unsafe, accepts=nothing_accepted).mend(text)


def assert_fixed(before: str, after: str | None = None, *, unsafe: bool = True) -> Mended:
    """Corrections of `before` give `after`, and of `after` nothing; None for no change at all."""
    old = textwrap.dedent(before).lstrip("\n")
    new = old if after is None else textwrap.dedent(after).lstrip("\n")
    mended = mend(old, unsafe=unsafe)
    assert mended.text == new
    assert mend(new, unsafe=unsafe).text == new
    return mended
