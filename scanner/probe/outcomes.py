"""What a worker's messages mean for a configuration."""

from __future__ import annotations

import msgspec

from scanner.backends.interface import DeviceFacts
from scanner.probe.fallback import FallbackCost, cost_text
from scanner.probe.protocol import Broken, Outcome, Result
from scanner.records import Measurement

__all__ = ["excused", "measurement_of", "not_run", "outcome_of", "unreadable"]


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
    if message.fallbacks and message.status in {"native", "composite", "slow"}:
        reason = f"runs on the CPU: {', '.join(message.fallbacks)}"
        if cost := message.detail.get("fallback_cost"):
            reason += f"; {cost_text(msgspec.convert(cost, FallbackCost))}"
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


def measurement_of(outcome: Outcome, facts: DeviceFacts) -> Measurement:
    """What a report says about an outcome."""
    said = msgspec.json.decode(msgspec.json.encode(outcome))  # as a report that is read again
    kept = ("reason", "fallbacks", "warnings", "death", "seconds")
    return Measurement(
        device=f"{facts.backend} ({facts.name}, {facts.framework}, {facts.os})",
        status=outcome.status,
        detail={**outcome.detail, **{name: said[name] for name in kept if said[name]}},
    )


def excused(outcome: Outcome) -> Outcome:
    """The outcome on an imitated device, whose deaths and hangs are its own and not the op's."""
    if outcome.status != "crash":
        return outcome
    reason = f"the simulator failed: {outcome.reason}"
    return msgspec.structs.replace(outcome, status="unknown", reason=reason)


def unreadable(key: str, times: int) -> Outcome:
    """A configuration whose results never arrived whole."""
    reason = f"its result was garbled on its way {times} times"
    return Outcome(key=key, status="unknown", reason=reason)


def not_run(key: str, reason: str) -> Outcome:
    """A configuration about which nothing was learnt; the next scan tries again."""
    return Outcome(key=key, status="unknown", reason=f"not run: {reason}", final=False)
