"""From observations of single calls to one fact for an overload, a dtype and a layout."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from opdb.build.execution.observation import Observation
from opdb.facts import plain
from opdb.simulated import ANY

__all__ = ["fold", "normalised"]

_NUMBER = re.compile(r"(?<![\w.])-?(0x[0-9a-fA-F]+|\d+(\.\d+)?(e[+-]?\d+)?)(?![\w]|\.\d)")
_LONGEST = 160


def fold(observations: Iterable[Observation]) -> Iterator[tuple[str, ...]]:
    """Facts as columns of `tables.SIMULATED` without the last, in no order.

    Ordinary are calls as sampled that hold elements and no float64. A layout has a fact of its
    own only where it shows an outcome that no ordinary call has.
    """
    groups: defaultdict[tuple[str, str], defaultdict[str, list[Observation]]]
    groups = defaultdict(lambda: defaultdict(list))
    for seen in observations:
        if not seen.wide:
            groups[plain(seen.op), seen.dtype][_layout(seen)].append(seen)
    for (op, dtype), layouts in groups.items():
        usual = {seen.outcome for seen in layouts.get(ANY, ())}
        for layout, calls in layouts.items():
            if layout == ANY or not _told(layout, calls, usual):
                yield (op, dtype, layout, *_columns(calls))


def normalised(text: str) -> str:
    """A message's first sentence without numbers and addresses, on one line."""
    first = text.strip().partition("\n")[0].partition(". ")[0]
    return " ".join(_NUMBER.sub("N", first).split())[:_LONGEST].strip()


def _layout(seen: Observation) -> str:
    if seen.layout != "sampled":
        return seen.layout
    return "empty" if seen.empty else ANY


def _told(layout: str, calls: Sequence[Observation], usual: set[str]) -> bool:
    """Whether ordinary calls show it already. Where there is nothing to compute nothing is told."""
    outcomes = {seen.outcome for seen in calls}
    idle = layout == "empty" and all(not seen.launches and not seen.graphs for seen in calls)
    return outcomes <= usual or (bool(usual) and idle and outcomes == {"native-shader"})


def _columns(calls: Sequence[Observation]) -> tuple[str, ...]:
    """outcome, calls, waits, launches, detail."""
    outcomes = Counter(seen.outcome for seen in calls)
    ran = [seen for seen in calls if seen.outcome not in {"raises", "unknown"}]
    waits = _range(seen.waits for seen in ran)
    launches = _range(seen.launches + seen.graphs for seen in ran)
    if len(outcomes) == 1:
        (outcome,) = outcomes
        return outcome, str(len(calls)), waits, launches, _detail(outcome, calls) or "-"
    counts = ",".join(f"{name}:{count}" for name, count in sorted(outcomes.items()))
    texts = [text for name in ("raises", "unknown") if (text := _detail(name, calls))]
    return "mixed", str(len(calls)), waits, launches, "; ".join([counts, *texts[:1]])


def _detail(outcome: str, calls: Sequence[Observation]) -> str:
    """What is most often said about an outcome; of equals the first in order."""
    texts = Counter(_text(seen) for seen in calls if seen.outcome == outcome)
    return min(texts, key=lambda text: (-texts[text], text), default="")


def _text(seen: Observation) -> str:
    if seen.outcome == "fallback":
        return ", ".join(sorted(seen.fallbacks))
    if seen.outcome == "raises":
        return f"{seen.error}: {normalised(seen.message)}"
    return normalised(seen.message)


def _range(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    if not found:
        return "-"
    return str(found[0]) if len(found) == 1 else f"{found[0]}..{found[-1]}"
