"""What can go wrong before a session opens."""

from __future__ import annotations

from scanner.errors import OpscanError

__all__ = ["PrepareError"]


class PrepareError(OpscanError):
    """A release cannot be prepared, or what was prepared cannot be used."""
