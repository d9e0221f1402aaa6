"""What releases would cure and break, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from scanner.judge.upgrade import ModelUpgrade, Upgrade
from scanner.statuses import SEVERITY_ORDER

__all__ = ["upgrade_text"]

_SHOWN = 3
"""Ops named in a cell; the JSON has all."""


def upgrade_text(models: Sequence[ModelUpgrade]) -> str:
    """A table for each model; releases that change nothing against the one before share a line."""
    return "\n".join(line for model in models for line in _model(model))


def _model(model: ModelUpgrade) -> Iterator[str]:
    yield f"{model.source}: {model.name}, compared with {model.base}"
    yield f"  {'torch':<18}{'not good':<44}{'cures':<36}breaks"
    for first, last in _runs(model.releases):
        release = first.version if first is last else f"{first.version} – {last.version}"
        parts = (_counts(first), _ops(first.cures), _ops(first.breaks))
        yield f"  {release:<18}{parts[0]:<44}{parts[1]:<36}{parts[2]}".rstrip()
    yield _conclusion(model)
    yield ""


def _runs(releases: Sequence[Upgrade]) -> Iterator[tuple[Upgrade, Upgrade]]:
    """First and last of neighbours that do the same."""
    start = 0
    for index, release in enumerate(releases):
        following = releases[index + 1] if index + 1 < len(releases) else None
        if following is None or following.bad != release.bad:
            yield releases[start], release
            start = index + 1


def _badness(release: Upgrade) -> tuple[int, int]:
    """Ops that stop or spoil the step first, then all that are not good."""
    mild = sum(status in {"fallback", "slow"} for status in release.bad.values())
    return len(release.bad) - mild, mild


def _counts(release: Upgrade) -> str:
    counts = Counter(release.bad.values())
    named = [f"{counts[status]} {status}" for status in SEVERITY_ORDER if counts[status]]
    return ", ".join(named) or "nothing"


def _ops(ops: Sequence[str]) -> str:
    names = [op.removeprefix("aten::") for op in ops[:_SHOWN]]
    more = f" +{len(ops) - _SHOWN}" if len(ops) > _SHOWN else ""
    return ", ".join(names) + more or "-"


def _conclusion(model: ModelUpgrade) -> str:
    base = next(release for release in model.releases if release.target == model.base)
    if not base.bad:
        return f"  torch {base.version} leaves nothing to cure."
    if model.smallest is None:
        later = model.releases[model.releases.index(base) :]
        best = min(reversed(later), key=_badness)
        left = ", ".join(f"{op} ({status})" for op, status in best.bad.items())
        return f"  No known release cures everything; torch {best.version} leaves {left}."
    return f"  Smallest upgrade without errors, fallbacks or wrong results: torch {model.smallest}."
