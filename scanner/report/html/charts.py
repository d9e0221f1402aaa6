"""Charts as inline SVG: pure functions from numbers to markup, with their figures as text.

Series differ in dash and marker as well as in colour. Colours are classes of the style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

__all__ = ["LineChart", "Series", "bar", "line_chart", "ticks"]

Point = tuple[float, float]
_WIDTH, _HEIGHT = 560.0, 230.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 72.0, 12.0, 10.0, 34.0
_MARKERS = (
    '<circle cx="{x}" cy="{y}" r="3.5"/>',
    '<path d="M{x} {y}m-4 3.2h8l-4-7z"/>',
    '<path d="M{x} {y}m-3.2 -3.2h6.4v6.4h-6.4z"/>',
)


@dataclass(frozen=True, kw_only=True)
class Series:
    """A line; a point whose y is None is a gap."""

    name: str
    ys: tuple[float | None, ...]
    band: tuple[tuple[float, float], ...] = ()
    """Lowest and highest y at each x, if it is spread."""


@dataclass(frozen=True, kw_only=True)
class LineChart:
    """Lines over common labels, which stand at equal distances."""

    title: str
    xs: tuple[str, ...]
    x_title: str
    series: tuple[Series, ...]
    y_text: Callable[[float], str]
    from_zero: bool = True
    unit: float = 1.0
    """What y is counted in where marks of the axis should be round."""


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers from at most `low` to at least `high`, in steps of 1, 2 or 5 times 10^n."""
    span = high - low if high > low else abs(high) or 1.0
    raw = span / about
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def bar(share: float, kind: str) -> Markup:
    """A bar that fills `share` (0 to 1) of its box, all of it where that is no finite number; the
    number stands beside it as text."""
    width = 100 * min(max(share, 0.0), 1.0) if math.isfinite(share) else 100.0
    return Markup(
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="10"/>'
        '<rect class="{}" width="{}" height="10"/></svg>'
    ).format(kind, f"{width:.2f}")


def line_chart(chart: LineChart) -> Markup:
    """The chart; its figures belong in a table beside it."""
    values = [y for line in chart.series for y in line.ys if y is not None]
    values += [y for line in chart.series for pair in line.band for y in pair]
    if not values:
        return Markup()
    low = min(0.0, *values) if chart.from_zero else min(values)
    marks = [mark * chart.unit for mark in ticks(low / chart.unit, max(values) / chart.unit)]
    scale = _Scale(count=len(chart.xs), low=marks[0], high=marks[-1])
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(
        f"{_WIDTH:g}",
        f"{_HEIGHT:g}",
        f"{chart.title}; by {chart.x_title}; figures in the table below",
        Markup("").join(
            [_grid(marks, scale, chart.y_text), _x_axis(chart, scale), *_lines(chart, scale)]
        ),
    )


@dataclass(frozen=True, kw_only=True)
class _Scale:
    count: int
    low: float
    high: float

    def x(self, place: int) -> float:
        width = _WIDTH - _LEFT - _RIGHT
        return round(_LEFT + width * (place + 0.5) / max(self.count, 1), 1)

    def y(self, value: float) -> float:
        height = _HEIGHT - _TOP - _BOTTOM
        return round(_TOP + height * (1 - (value - self.low) / (self.high - self.low)), 1)


def _grid(marks: Sequence[float], scale: _Scale, text: Callable[[float], str]) -> Markup:
    line = Markup(
        '<line class="grid" x1="{}" x2="{}" y1="{y}" y2="{y}"/>'
        '<text class="tick" x="{}" y="{y}" dy=".32em" text-anchor="end">{}</text>'
    )
    return Markup("").join(
        line.format(_LEFT, _WIDTH - _RIGHT, _LEFT - 6, text(mark) if mark else "0", y=scale.y(mark))
        for mark in marks
    )


def _x_axis(chart: LineChart, scale: _Scale) -> Markup:
    every = math.ceil(len(chart.xs) / 12)
    label = Markup('<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>')
    labels = [
        label.format(scale.x(place), _HEIGHT - _BOTTOM + 14, text)
        for place, text in enumerate(chart.xs)
        if place % every == 0
    ]
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    return Markup("").join([*labels, label.format(middle, _HEIGHT - 4, chart.x_title)])


def _lines(chart: LineChart, scale: _Scale) -> list[Markup]:
    return [
        Markup('<g class="series c{}">{}{}</g>').format(
            number % 3, _band(line, scale), _line(line, scale, _MARKERS[number % 3])
        )
        for number, line in enumerate(chart.series)
    ]


def _band(line: Series, scale: _Scale) -> Markup:
    if not line.band:
        return Markup()
    upper = [f"{scale.x(place)} {scale.y(high)}" for place, (_, high) in enumerate(line.band)]
    lower = [f"{scale.x(place)} {scale.y(low)}" for place, (low, _) in enumerate(line.band)]
    return Markup('<path class="band" d="M{}Z"/>').format("L".join([*upper, *reversed(lower)]))


def _line(line: Series, scale: _Scale, marker: str) -> Markup:
    path, points, pen = [], [], "M"
    for place, value in enumerate(line.ys):
        if value is None:
            pen = "M"
            continue
        x, y = scale.x(place), scale.y(value)
        path.append(f"{pen}{x} {y}")
        points.append(Markup(marker).format(x=x, y=y))
        pen = "L"
    return Markup('<path class="line" d="{}"/>{}').format(" ".join(path), Markup("").join(points))
