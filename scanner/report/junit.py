"""JUnit XML: a suite for each target, a case for each configuration, passed ones too.

Source of the form: jenkinsci/xunit-plugin, junit-10.xsd.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from operator import eq
from xml.etree import ElementTree as ET

from scanner.records import Report
from scanner.report.interface import Style
from scanner.report.junit_cases import Case, cases_for
from scanner.report.words import clean

__all__ = ["render"]

_ELEMENTS = ("failure", "error", "skipped")


def render(report: Report, style: Style) -> str:  # noqa: ARG001 - one signature for all formats
    """Suites in the order of the targets, then one for what is about no target."""
    root = ET.Element("testsuites", name="opscan")
    every: list[Case] = []
    for name, cases in _suites(report):
        root.append(_suite(name, cases))
        every += cases
    root.attrib.update(_totals(every, ("failure", "error")))
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suites(report: Report) -> Iterator[tuple[str, list[Case]]]:
    known = [target.id for target in report.targets]
    for target in known:
        yield target, list(cases_for(report, partial(eq, target), target))
    rest = list(cases_for(report, lambda one: one not in known, None))
    if rest:
        yield "opscan", rest


def _suite(name: str, cases: Sequence[Case]) -> ET.Element:
    suite = ET.Element("testsuite", {"name": _text(name), **_totals(cases, _ELEMENTS)})
    seen: Counter[tuple[str, str]] = Counter()
    for case in cases:
        seen[case.group, case.name] += 1
        number = seen[case.group, case.name]
        title = case.name if number == 1 else f"{case.name} #{number}"
        element = ET.SubElement(suite, "testcase", classname=_text(case.group), name=_text(title))
        if case.result != "passed":
            told = ET.SubElement(element, case.result, message=_text(case.message))
            if case.kind:
                told.set("type", _text(case.kind))
            told.text = _text(case.details)
        elif case.details:
            ET.SubElement(element, "system-out").text = _text(case.details)
    return suite


def _totals(cases: Sequence[Case], kinds: Sequence[str]) -> dict[str, str]:
    results: Counter[str] = Counter(case.result for case in cases)
    plural = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    return {"tests": str(len(cases)), **{plural[kind]: str(results[kind]) for kind in kinds}}


def _text(text: str) -> str:
    """Without what XML or a terminal cannot take; line ends stay."""
    lines = (clean(line) for line in text.split("\n"))
    return "\n".join(lines).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
