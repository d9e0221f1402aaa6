"""Writes docs/simulator-contradictions.md: where execution says otherwise than registrations do.

python bench/sim_contradictions.py --write | --check
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from opdb import query, simulated, tables
from opdb.simulated import Simulated
from opdb.store import default

PAGE = Path(__file__).parents[1] / "docs" / "simulator-contradictions.md"
RUNS = {"native-shader", "native-graph", "fallback", "mixed"}
HEAD = """\
# Where execution contradicts registrations

Written by `python bench/sim_contradictions.py --write` from `opdb/data/torch/`. A registration says
that a release has a kernel; [execution](opdb.md#from-execution) says what comes of calls. Both are
about dense tensors with elements, as PyTorch samples them.

Simulated: {environments}.
"""
KINDS = {
    "refuses": (
        "Registered, and raises for every dtype",
        "No sampled call ran, of any dtype. Nothing follows for other sizes and arguments: the "
        "verdict of a scan stays what the registration says.",
    ),
    "dtype": (
        "Registered, and raises for its dtype",
        "All calls of these dtypes raise, and calls of others run. A scan calls them "
        "*unsupported*, with evidence *simulated*.",
    ),
    "cpu": (
        "Registered, and computed on the CPU",
        "The kernel itself hands the work to the CPU. No registration shows that.",
    ),
    "runs": (
        "Not registered, and runs",
        "Statuses follow from what is called on *every* path; these calls took another.",
    ),
}
REASONS = (
    (r"is not currently implemented for the MPS", "it calls an operator without an MPS kernel"),
    (r"create function state object", "it asks for a shader that the release's library lacks"),
    (r"float64|Double", "it makes a float64 tensor, which no GPU of Apple has"),
    (r"divisible", "the samples' sizes: it takes only sizes that divide evenly"),
    (r"LAPACK", "it copies to the CPU and calls LAPACK there"),
    (r"not implemented for '", "it checks the dtype"),
    (
        r"(?i)\b(d?types?|float\d*|floating|int\d*|integer|long|bool|complex\d*)\b",
        "it checks the dtype",
    ),
)


class Found(NamedTuple):
    """One line of a table."""

    kind: str
    op: str
    status: str
    seen: str
    why: str


def main() -> int:
    """Status 1 where `--check` finds the page out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = page()
    if options.write:
        PAGE.write_text(text, "utf-8")
    if options.check and PAGE.read_text("utf-8") != text:
        print(f"{PAGE} is not current: python bench/sim_contradictions.py --write")
        return 1
    return 0


def page() -> str:
    """The whole page."""
    where: defaultdict[Found, list[str]] = defaultdict(list)
    ops = sorted({span.op for span in default.all(tables.SIMULATED)})
    for name in default.simulations:
        release, _, macos = name.partition("@")
        for op in ops:
            for found in contradictions(op, release, macos):
                where[found].append(release)
    listed = ", ".join(f"{r} on macOS {m}" for r, m in (n.split("@") for n in default.simulations))
    parts = [HEAD.format(environments=listed)]
    for kind, (title, text) in KINDS.items():
        rows = sorted((found, each) for found, each in where.items() if found.kind == kind)
        parts.append(f"\n## {title}\n\n{text}\n\n" + "".join(_table(rows)))
    return "".join(parts)


def contradictions(op: str, release: str, macos: str) -> Iterator[Found]:
    """What is to be said about one overload in one environment."""
    facts = [f for f in simulated.dtypes(op, release, macos) if f.layout == simulated.ANY]
    fact = query.lookup(op, release)
    registered = fact.status in {"native", "composite"}
    if not facts or not fact.exists:
        return
    raising = [f for f in facts if f.outcome == "raises"]
    if registered and len(raising) == len(facts):
        yield _found("refuses", fact.status, raising)
    elif registered and (typed := [f for f in raising if f.by_dtype]):
        yield _found("dtype", fact.status, typed)
    if registered and (fallen := [f for f in facts if f.outcome == "fallback"]):
        yield _found("cpu", fact.status, fallen)
    ran = [f for f in facts if f.outcome in RUNS]
    if fact.status == "unsupported" and ran:
        yield _found("runs", fact.reason.partition(";")[0], ran)


def _found(kind: str, status: str, facts: list[Simulated]) -> Found:
    details = list(dict.fromkeys(fact.detail for fact in facts if fact.detail))
    dtypes = ", ".join(fact.dtype for fact in facts)
    said = f"{dtypes}: {facts[0].outcome}" + (f" `{details[0]}`" if details else "")
    return Found(kind, facts[0].op.removeprefix("aten::"), status, said, _why(details, kind))


def _why(details: list[str], kind: str) -> str:
    text = " ".join(details)
    if kind == "runs":
        return "see above"
    return next((why for pattern, why in REASONS if re.search(pattern, text)), "a check of its own")


def _table(rows: list[tuple[Found, list[str]]]) -> Iterator[str]:
    if not rows:
        yield "None.\n"
        return
    yield "| op | registration | execution | why | torch |\n|---|---|---|---|---|\n"
    for found, releases in rows:
        cells = (f"`{found.op}`", found.status, found.seen, found.why, ", ".join(releases))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    sys.exit(main())
