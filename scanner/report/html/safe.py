"""What strings of a report are made before they reach a page.

Reports hold text of others: names from source files, messages of native libraries, and all of it
may come from a file that somebody sent. Markup is escaped by the template; this is the rest.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from scanner.report.words import clean

__all__ = ["safe", "safe_link"]


def safe(text: str) -> str:
    """Free of characters that steer: controls, direction overrides, lone surrogates; lines stay."""
    return "\n".join(clean(line) for line in text.replace("\r\n", "\n").split("\n"))


def safe_link(link: str) -> str | None:
    """The link if it is a web address, else None: `javascript:` must never be clickable."""
    try:
        parts = urlsplit(link)
    except ValueError:
        return None
    return safe(link) if parts.scheme in {"http", "https"} and parts.netloc else None
