"""A step as a strip of a few hundred slots, each coloured by the worst that happens in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from markupsafe import Markup

from scanner.records import Status
from scanner.report.html.lanes import LANES, Lane
from scanner.statuses import SEVERITY_ORDER

__all__ = ["strip"]

_SLOTS = 400
_RANK = {status: rank for rank, status in enumerate(SEVERITY_ORDER)}
_TOP = {"gpu": 0, "cpu": 12, "host": 12, "stops": 0, "unknown": 0}
_HEIGHT = {"gpu": 12, "cpu": 12, "host": 12, "stops": 24, "unknown": 24}
"""The GPU above, the CPU below, what stops the step or is not known across both."""


def strip(statuses: Sequence[Status], lanes: Sequence[Lane], told: str) -> Markup:
    """SVG; `statuses` and `lanes` of each call in order. What is drawn is also told in words."""
    slots = min(_SLOTS, len(statuses))
    if not slots:
        return Markup()
    edges = [number * len(statuses) // slots for number in range(slots + 1)]
    worst = [
        min(zip(statuses[begin:end], lanes[begin:end], strict=True), key=lambda one: _RANK[one[0]])
        for begin, end in pairwise(edges)
    ]
    parts = []
    place = 0
    for (status, lane), group in groupby(worst):
        width = sum(1 for _ in group)
        parts.append(_part(status, lane, place, width))
        place += width
    return Markup(
        '<svg class="strip" viewBox="0 0 {} 24" preserveAspectRatio="none" role="img" '
        'aria-label="{}">{}</svg>'
    ).format(slots, told, Markup("").join(parts))


def _part(status: Status, lane: Lane, place: int, width: int) -> Markup:
    return Markup(
        '<rect class="s-{}" x="{}" y="{}" width="{}" height="{}"><title>{}, {}</title></rect>'
    ).format(status, place, _TOP[lane], width, _HEIGHT[lane], status, LANES[lane])
