"""Which composite ops a target keeps whole, and so under which profile a model is captured."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from scanner.capture.lowering import BRANCHES, BRANCHES_BEFORE_MACOS_15, FALLBACKS, HOLDABLE
from scanner.capture.protocol import Profile
from scanner.judge.interface import Knowledge
from scanner.records import Target

__all__ = ["profile_for", "profiles_for"]


def profile_for(target: Target, knowledge: Knowledge) -> Profile:
    """The lowering profile of the target's release: the holdable ops it has an MPS kernel for."""
    registered = [
        op
        for ops, function in ((HOLDABLE, "kernel"), (FALLBACKS, "fallback"))
        for op in ops
        if knowledge.lookup(op, target.version).registered == function
    ]
    branches = [*BRANCHES.items(), *(BRANCHES_BEFORE_MACOS_15.items() if _old(target) else ())]
    taken = [name for name, span in branches if _within(target.version, *span)]
    holds = tuple(sorted(registered + taken))
    digest = hashlib.sha256("\n".join(holds).encode()).hexdigest()[:12]
    return Profile(id=digest, holds=holds, release=target.version)


def _old(target: Target) -> bool:
    """Whether the target says that its macOS is older than 15."""
    return target.macos is not None and _release_key(target.macos) < (15,)


def _within(version: str, first: str, last: str) -> bool:
    """Whether a release lies in a range with open ends."""
    here = _release_key(version)
    return _release_key(first) <= here and (not last or here <= _release_key(last))


def profiles_for(
    targets: Iterable[Target], knowledge: Knowledge
) -> tuple[dict[str, str], tuple[Profile, ...]]:
    """Target id → profile id, and each profile once with the newest release among its targets."""
    by_target: dict[str, str] = {}
    profiles: dict[str, Profile] = {}
    for target in targets:
        profile = profile_for(target, knowledge)
        by_target[target.id] = profile.id
        known = profiles.setdefault(profile.id, profile)
        if _release_key(known.release) < _release_key(profile.release):
            profiles[profile.id] = msgspec.structs.replace(known, release=profile.release)
    return by_target, tuple(profiles.values())


def _release_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
