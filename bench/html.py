"""Size and speed of the HTML report of a deep model: `python bench/html.py [--browser PATH]`.

A training step of about 13,000 calls in more than 6,000 configurations, the most that a page has to
hold, is captured and rendered. With Chromium the page is opened from a file, each time in a new
context: until all of it can be used, and how long a search, a sort, and a move over the whole step
take. Limits: 3 MB, 1 second. Chromium is driven by Playwright (`pip install playwright`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROUNDS = 9
MOST_BYTES = 3_000_000
MOST_MS = 1_000.0
MODEL = """
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, spectral):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.wider, self.spectral = nn.Linear(width, width + 8), spectral

    def attend(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, 4, d // 4).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        weights = q @ k.transpose(-2, -1) / d**0.5
        if self.spectral:
            weights = weights / torch.linalg.svdvals(weights.mean((0, 1))).amax()
        return self.out((weights.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return self.wider(x + self.down(F.gelu(self.up(self.norm2(x))) * 0.5))


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(Block(64 + 8 * n, n % 8 == 7) for n in range(46)))

    def forward(self, x):
        return self.blocks(x)


def train():
    model = Deep()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    loss = model(torch.randn(8, 32, 64)).square().mean()
    loss.backward()
    optimizer.step()
"""
TIMED = """() => {
  const begun = performance.now();
  %s;
  document.body.offsetHeight;  // laid out, too
  return performance.now() - begun;
}"""
ACTIONS = {
    "search": "opForm.elements.text.value = 'linear'; update()",
    "sort by op": "sortBy('op')",
    "draw the step": "drawWalk()",
}


def scanned(folder: Path) -> Path:
    """The JSON report of the model, for two releases."""
    (folder / "deep.py").write_text(MODEL)
    command = [sys.executable, "-m", "scanner", "deep.py:Deep", "--inputs", "x=8x32x64:float32"]
    command += [
        "-t",
        "torch==2.9.1,fallback=1",
        "-t",
        "torch==2.15.0",
        "-f",
        "json",
        "-o",
        "r.json",
    ]
    subprocess.run([*command, "--fail-on", "never"], cwd=folder, check=True)
    return folder / "r.json"


def rendered(report: Path) -> tuple[Path, float]:
    """The page, and the median of the seconds that rendering takes without reading the report."""
    from scanner.report import Style, render
    from scanner.report.json_ import parse

    found = parse(report.read_bytes(), str(report))
    seconds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        text = render(found, "html", Style())
        seconds.append(time.perf_counter() - begun)
    page = report.with_suffix(".html")
    page.write_text(text, encoding="utf-8")
    return page, statistics.median(seconds)


def opened(page: Path, browser: str) -> dict[str, list[float]]:
    """Milliseconds until the page is ready and of each action, in a new context every time."""
    from playwright.sync_api import sync_playwright

    times: dict[str, list[float]] = {"ready": [], **{name: [] for name in ACTIONS}}
    with sync_playwright() as driver:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        chromium = driver.chromium.launch(executable_path=browser, args=flags)
        for _ in range(ROUNDS):
            context = chromium.new_context()
            tab = context.new_page()
            tab.goto(page.as_uri())
            ready = "performance.getEntriesByName('opscan-ready')[0].startTime"
            times["ready"].append(tab.evaluate(ready))
            for name, action in ACTIONS.items():
                times[name].append(tab.evaluate(TIMED % action))
            context.close()
        chromium.close()
    return times


def main() -> int:
    """Print the figures; 1 when a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--browser", default=shutil.which("chromium"), help="path of Chromium")
    browser = parser.parse_args().browser
    with tempfile.TemporaryDirectory() as name:
        report = scanned(Path(name))
        model: dict[str, Any] = json.loads(report.read_bytes())["models"][0]
        page, seconds = rendered(report)
        calls = sum(row["calls"] for row in model["ops"])
        size = page.stat().st_size
        print(f"{calls:,} calls, {len(model['ops']):,} configurations")
        sizes = f"JSON {report.stat().st_size:,} bytes, page {size:,} bytes"
        print(f"{sizes}, rendered in {seconds:.2f} s")
        times = opened(page, browser) if browser else {}
    for what, found in times.items():
        print(f"{what:14} median {statistics.median(found):6.1f} ms, most {max(found):6.1f} ms")
    if not times:
        print("no Chromium: name one with --browser")
    late = any(statistics.median(found) > MOST_MS for found in times.values())
    return 1 if size > MOST_BYTES or late else 0


if __name__ == "__main__":
    sys.exit(main())
