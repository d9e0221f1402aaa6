"""What a worker's messages mean for a configuration."""

from __future__ import annotations

import msgspec

from scanner.probe.protocol import Broken, Outcome, Result

__all__ = ["not_run", "outcome_of", "unreadable"]


def outcome_of(key: str, message: Result | Broken) -> Outcome:
    """The outcome of a configuration that was run to its end."""
    if isinstance(message, Broken):
        return _broken(key, message)
    outcome = Outcome(
        key=key,
        status=message.status,
        reason=message.reason,
        detail=message.detail,
        fallbacks=message.fallbacks,
        warnings=message.warnings,
        seconds=message.seconds,
    )
    if message.fallbacks and message.status in {"native", "composite"}:
        reason = f"runs on the CPU: {', '.join(message.fallbacks)}"
        return msgspec.structs.replace(outcome, status="fallback", reason=reason)
    return outcome


def _broken(key: str, message: Broken) -> Outcome:
    doing = "out of memory" if message.memory else "it could not be judged"
    return Outcome(
        key=key,
        status="unknown",
        reason=f"{doing}: {message.error}",
        detail={"traceback": message.traceback},
    )


def unreadable(key: str, times: int) -> Outcome:
    """A configuration whose results never arrived whole."""
    reason = f"its result was garbled on its way {times} times"
    return Outcome(key=key, status="unknown", reason=reason)


def not_run(key: str, reason: str) -> Outcome:
    """A configuration about which nothing was learnt; the next scan tries again."""
    return Outcome(key=key, status="unknown", reason=f"not run: {reason}", final=False)
