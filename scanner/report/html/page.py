"""Renders the page: templates, style sheet and scripts from `templates/page`."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from scanner.records import ModelReport, Report
from scanner.report.evidence import evidence_text
from scanner.report.html.embed import embedded, script_json
from scanner.report.html.findings import rules_in, sections
from scanner.report.html.glance import glances
from scanner.report.html.plots import figures
from scanner.report.html.safe import safe, safe_link
from scanner.report.html.views import views_of
from scanner.report.interface import Style
from scanner.report.text_accepted import accepted_text
from scanner.report.words import count, place
from scanner.statuses import SEVERITY_ORDER

__all__ = ["STATUS_SIGNS", "render"]

STATUS_SIGNS = {
    "native": "✓",
    "composite": "✓",
    "fallback": "C",
    "slow": "S",
    "unsupported": "✗",
    "crash": "!",
    "wrong": "≠",
    "nan": "N",
    "unknown": "?",
    "skipped": "·",
}
"""Told apart without colour; the word always stands beside it."""

_STATUSES = {
    "native": "an MPS kernel runs it",
    "composite": "made of other ops, which are judged themselves",
    "fallback": "runs on the CPU; data are copied there and back",
    "slow": "runs on the device, slower than on the CPU",
    "unsupported": "raises",
    "crash": "ends the process",
    "wrong": "gives other results than the reference",
    "nan": "gives NaN or infinity where the reference does not",
    "unknown": "nobody could tell; not a pass",
    "skipped": "not run on the device",
}
_SCRIPTS = ("page.js", "findings.js", "table.js", "timeline_draw.js", "timeline.js")


def render(report: Report, style: Style) -> str:  # noqa: ARG001 - one signature for all formats
    """The page as one file that loads nothing."""
    sheet, dark = _text("page.css"), _text("dark.css")
    script = "\n".join(_text(name) for name in _SCRIPTS)
    seen = glances(report)
    return (
        _environment()
        .get_template("page.html")
        .render(
            report=report,
            views=views_of(report),
            glances=seen,
            sections=sections(report),
            rules=rules_in(report),
            plots=[(each, found) for each in seen if (found := list(figures(each.model)))],
            evidence=evidence_text(report),
            accepted=accepted_text(report).removeprefix("; "),
            statuses=_STATUSES,
            order=SEVERITY_ORDER,
            signs=STATUS_SIGNS,
            data=script_json(embedded(report) | {"signs": STATUS_SIGNS}),
            sheet=Markup(sheet),
            dark=Markup(dark),
            script=Markup(script),
            policy=_policy((sheet, dark), script),
        )
        + "\n"
    )


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters |= {"place": place, "link": safe_link, "step": _step}
    environment.globals |= {"count": count}
    return environment


def _shown(value: Any) -> Any:
    """Every expression of a template passes here; what is not ours is made safe, then escaped."""
    return safe(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _step(model: ModelReport) -> str:
    """`training step: 12 ops, 40 configurations, 96 calls`."""
    kind = {"train": "training step", "infer": "inference"}.get(model.mode, model.mode)
    ops = count(len({row.op for row in model.ops}), "op")
    configurations = count(len(model.ops), "configuration")
    return f"{kind}: {ops}, {configurations}, {count(sum(row.calls for row in model.ops), 'call')}"


def _policy(sheets: Sequence[str], script: str) -> str:
    """Nothing is loaded, and no script runs but ours, whatever a report holds."""
    styles = " ".join(f"'{_hash(sheet)}'" for sheet in sheets)
    return f"default-src 'none'; style-src {styles}; script-src '{_hash(script)}'"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _text(name: str) -> str:
    return files("scanner.report").joinpath(f"templates/page/{name}").read_text("utf-8")
