"""What every rule has, whatever it looks at: an id, a name, and a docstring that is its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from scanner.records import Severity

__all__ = ["Documented", "Fixes", "page_of"]

Fixes = Literal["none", "safe", "unsafe", "mixed"]


class Documented(Protocol):
    """One entry of the registry. Ids are never reused."""

    @property
    def id(self) -> str:
        """As `OPS101`."""

    @property
    def name(self) -> str:
        """Words joined by hyphens."""

    @property
    def severity(self) -> Severity:
        """What a finding has unless its advice says otherwise."""

    @property
    def since(self) -> str:
        """Version of opscan that introduced it."""

    @property
    def fixes(self) -> Fixes:
        """Which corrections it offers `opscan fix`, at most."""

    @property
    def summary(self) -> str:
        """One sentence."""

    @property
    def explanation(self) -> str:
        """Markdown."""


def page_of(docstring: str | None) -> tuple[str, str]:
    """Summary and explanation: a docstring's first line and the rest."""
    from inspect import cleandoc  # imports more than a scan of one file needs

    summary, _, explanation = cleandoc(docstring or "").partition("\n")
    return summary, explanation.strip()
