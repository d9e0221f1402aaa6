"""Reads a page as a browser does, and says what is wrong with its markup."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "input", "br", "line", "rect", "path", "circle"}
"""Elements without an end tag; shapes of SVG end themselves (`<rect/>`), or have a title inside."""
HIDDEN = {"script", "style", "title"}
BREAKS = {"p", "li", "tr", "h1", "h2", "h3", "h4", "summary", "figcaption", "caption", "label"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    children: list[Element | str] = field(default_factory=list)

    def every(self, tag: str | None = None) -> list[Element]:
        found = []
        for child in self.children:
            if isinstance(child, Element):
                found += [child] if tag in (None, child.tag) else []
                found += child.every(tag)
        return found

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def shown(self) -> str:
        """Text that is not in scripts, a line for each block."""
        parts = [
            child if isinstance(child, str) else "" if child.tag in HIDDEN else child.shown
            for child in self.children
        ]
        inside = "".join(parts)
        cells = f" {inside} " if self.tag in {"td", "th"} else inside
        return f"\n{inside}\n" if self.tag in BREAKS else cells


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.faults.append(f"an attribute twice in {self.get_starttag_text()}")
        made = Element(tag, dict(attrs))
        self.open[-1].children.append(made)
        if tag not in VOID or tag == "rect":
            self.open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if self.open[-1].tag != tag:
            self.faults.append(f"</{tag}> ends <{self.open[-1].tag}>")
        if len(self.open) > 1:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parsed(page: str) -> Element:
    """The page; raises AssertionError where it is not well-formed."""
    builder = _Builder()
    builder.feed(page)
    builder.close()
    assert builder.faults == []
    assert [element.tag for element in builder.open] == [""]
    return builder.root


def by_id(root: Element) -> dict[str, Element]:
    found = [element for element in root.every() if "id" in element.attributes]
    named = {str(element.attributes["id"]): element for element in found}
    assert len(named) == len(found), "an id is there twice"
    return named


def embedded_data(root: Element) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(by_id(root)["data"].text)
    return data


def shown_text(root: Element) -> str:
    """What is read without JavaScript, a line a block."""
    (body,) = root.every("body")
    lines = (re.sub(r"\s+", " ", line).strip() for line in body.shown.split("\n"))
    return "\n".join(line for line in lines if line)
