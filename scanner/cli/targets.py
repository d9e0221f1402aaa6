"""Which targets a command judges for, and why when the user did not say."""

from __future__ import annotations

from collections.abc import Sequence

from opdb import query
from scanner.errors import UsageError
from scanner.host import Host
from scanner.judge.target import parse_targets
from scanner.records import Target

__all__ = ["choose_targets", "release_named"]


def release_named(text: str) -> str:
    """The known release that `text` names; the newest for an empty text."""
    return query.resolve_release(text) if text else query.newest()


def choose_targets(texts: Sequence[str], host: Host) -> tuple[tuple[Target, ...], tuple[str, ...]]:
    """Targets, and a note for the report when opscan chose them itself."""
    if texts:
        return parse_targets(texts, release_named), ()
    if host.is_apple_silicon and host.torch:
        return _this_mac(host, host.torch)
    target = Target(framework="torch", version=query.newest())
    note = f"judged for torch {target.version}, the newest release known; --target chooses another"
    return (target,), (note,)


def _this_mac(host: Host, installed: str) -> tuple[tuple[Target, ...], tuple[str, ...]]:
    try:
        release = query.resolve_release(installed)
    except UsageError:
        release = query.newest()
        note = (
            f"torch {installed}, which is installed here, is not known to this opscan; "
            f"judged for {release}, the newest release known"
        )
        return (host.target(release),), (note,)
    return (host.target(release),), ("judged for this Mac; --target chooses another",)
