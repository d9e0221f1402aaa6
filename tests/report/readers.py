"""Checks that a report's text is what the readers of its format take."""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import xmlschema

from scanner.report import markdown as markdown_format
from scanner.report.json_ import parse

__all__ = ["check"]

SCHEMAS = Path(__file__).parents[1] / "schemas"


@cache
def sarif_validator() -> jsonschema.Draft4Validator:
    schema = json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text())
    return jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())


@cache
def junit_schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(str(SCHEMAS / "junit-10.xsd"))


def check(name: str, text: str) -> None:
    """The text is what the format's readers take."""
    if name == "sarif":
        sarif_validator().validate(json.loads(text))
    elif name == "junit":
        junit_schema().validate(text)
        check_totals(ET.fromstring(text))
    elif name == "jsonl":
        kinds = [json.loads(line)["type"] for line in text.splitlines()]
        assert (kinds[0], kinds[-1], kinds.count("summary")) == ("report", "summary", 1)
    elif name == "json":
        parse(text.encode(), "report.json")
    elif name == "html":
        HTMLParser().feed(text)
        assert text.startswith("<!DOCTYPE html>") or text.startswith("<!doctype html>")
    elif name == "github":
        for line in text.splitlines():
            assert re.fullmatch(r"::(error|warning|notice) title=[^:]*::[^\n]*", line), line
    elif name == "markdown":
        assert len(text.encode()) <= markdown_format.MAX_BYTES


def check_totals(root: ET.Element) -> None:
    for suite in root:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        for total, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(total) == str(len(suite.findall(f"testcase/{kind}")))
