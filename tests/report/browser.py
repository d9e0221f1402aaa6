"""Headless Chromium for tests, or the reason why there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

__all__ = ["Tab", "absent", "chromium"]

FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu"),
    *("--disable-background-networking", "--no-first-run"),
]


@contextmanager
def chromium() -> Iterator[Any]:
    """A running browser; skips the test where Playwright or Chromium is missing."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        absent("Playwright is not installed")
    with sync_playwright() as playwright:
        path = os.environ.get("OPSCAN_CHROMIUM") or shutil.which("chromium")
        if path is None and not Path(playwright.chromium.executable_path).exists():
            absent("Chromium is not installed")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


def absent(what: str) -> NoReturn:
    """Skip; fail where the tests were asked for (`make browser-test`), lest nothing be tested."""
    if os.environ.get("OPSCAN_BROWSER") == "required":
        pytest.fail(what)
    pytest.skip(f"{what}; `make browser-test` brings it")


class Tab:
    """A page that was opened from a file, and everything that went wrong in it."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.file = file
        self.said: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())

    def close(self) -> None:
        """Close; the page must have been silent and alone."""
        self.context.close()
        assert self.said == []
        assert self.requests == [self.file.as_uri()]

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.page.locator(selector).all_inner_texts()
        return found

    def text(self, selector: str) -> str:
        return str(self.page.inner_text(selector))

    def run(self, script: str) -> Any:
        return self.page.evaluate(script)
