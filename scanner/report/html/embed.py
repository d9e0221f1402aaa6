"""The rows of a report as compact JSON for the page's scripts: every text is written once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from scanner.records import Location, ModelReport, OpReport, Report, Verdict
from scanner.report.blocks import each_line
from scanner.report.html.details import attributes_text, row_details, seconds_of
from scanner.report.html.lanes import LANE_OF, LANES, walk
from scanner.report.html.safe import safe, safe_link
from scanner.report.html.views import View, seen, views_of
from scanner.report.words import inputs_text, place
from scanner.statuses import SEVERITY_ORDER

__all__ = ["embedded", "script_json"]

_PLACES = 6
"""Distinct lines of a row; the number of further ones is told."""


def script_json(data: Any) -> Markup:
    """JSON in ASCII that cannot end or comment out the script element that it stands in."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return Markup(text.replace("<", "\\u003c"))


class _Table:
    """Values by number, each once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def __call__(self, value: Any, key: Any = None) -> int:
        key = value if key is None else key
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


class _Packer:
    """Numbers for what rows share."""

    def __init__(self, views: Sequence[View]) -> None:
        self.views = views
        self.texts = _Table()
        self.verdicts = _Table()
        self.seen = _Table()
        self.places = _Table()

    def text(self, value: str) -> int:
        return self.texts(safe(value))

    def row(self, row: OpReport) -> list[Any]:
        """Op, via, phase, calls, inputs, rest of the configuration, verdicts, places, more places,
        device seconds, CPU seconds, notes."""
        known = [
            (number, self._verdict(verdict))
            for number, view in enumerate(self.views)
            if (verdict := seen(row, view)) is not None
        ]
        lines = list(each_line(row.locations))
        device_s, cpu_s = seconds_of(row)
        return [
            self.text(row.op),
            self.text(row.via),
            self.text(row.phase),
            row.calls,
            self.text(inputs_text(row.config)),
            self.text(attributes_text(row.config)),
            self.seen(known, key=tuple(known)),
            [self._place(line) for line in lines[:_PLACES]],
            max(len(lines) - _PLACES, 0),
            device_s,
            cpu_s,
            [self.text(note) for note in row_details(row)],
        ]

    def _verdict(self, verdict: Verdict) -> int:
        links = [link for link in verdict.links if safe_link(link)]
        packed = [
            SEVERITY_ORDER.index(verdict.status),
            self.text(verdict.evidence or ""),
            self.text(verdict.reason),
            self.text(verdict.fixed_in or ""),
            [self.text(link) for link in links],
        ]
        return self.verdicts(packed, key=json.dumps(packed))

    def _place(self, line: Location) -> int:
        packed = [
            self.text(place(line)),
            self.text(line.code),
            self.text(line.module),
            self.text(line.library),
        ]
        return self.places(packed, key=tuple(packed))


def embedded(report: Report) -> dict[str, Any]:
    """Everything that the scripts of the page need."""
    views = views_of(report)
    pack = _Packer(views)
    models = [_model(model, pack) for model in report.models if model.ops]
    return {
        "statuses": SEVERITY_ORDER,
        "lanes": [[lane, name] for lane, name in LANES.items()],
        "laneOf": [list(LANES).index(LANE_OF[status]) for status in SEVERITY_ORDER],
        "views": [[safe(view.label), view.is_device] for view in views],
        "models": models,
        "texts": pack.texts.values,
        "verdicts": pack.verdicts.values,
        "seen": pack.seen.values,
        "places": pack.places.values,
    }


def _model(model: ModelReport, pack: _Packer) -> dict[str, Any]:
    rows = [pack.row(row) for row in model.ops]
    orders = _Table()
    of_view = []
    for view in pack.views:
        step = walk(model, view)
        ordered = step.is_ordered and bool(step.calls)
        of_view.append(orders(step.calls, key=step.calls) if ordered else -1)
    return {
        "name": safe(model.name),
        "source": safe(model.source),
        "rows": rows,
        "orders": orders.values,
        "orderOf": of_view,
    }
