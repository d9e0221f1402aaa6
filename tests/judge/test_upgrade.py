from __future__ import annotations

from typing import Any

from scanner.capture.ledger import Captured
from scanner.judge.models import judge_model
from scanner.judge.upgrade import ModelUpgrade, compare
from scanner.records import Target
from scanner.report.upgrade_text import upgrade_text
from tests.samples import KERNEL, MISSING, SILENT, Facts, call, graph

TARGETS = tuple(Target(framework="torch", version=release) for release in ("2.0", "2.1", "2.2"))


def compared(base: int, **statuses: tuple[dict[str, Any], ...]) -> ModelUpgrade:
    """Each op with what the three releases do with it."""
    step = graph(*(call(f"aten::{op}") for op in statuses))
    facts = Facts(
        {
            (f"aten::{op}", target.version): fact
            for op, each in statuses.items()
            for target, fact in zip(TARGETS, each, strict=True)
        }
    )
    model = Captured(name="Net", entry="Net", graphs={"p": step})
    judged = judge_model(model, TARGETS, {target.id: "p" for target in TARGETS}, facts)
    return compare(judged, TARGETS, TARGETS[base])


def test_cures_breaks_and_the_first_release_that_is_enough() -> None:
    found = compared(0, mm=(MISSING, SILENT, KERNEL), add=(KERNEL, MISSING, KERNEL))
    first, second, third = found.releases
    assert first.bad == {"aten::mm": "unsupported"}
    assert (second.cures, second.breaks, second.changes) == ((), ("aten::add",), ("aten::mm",))
    assert (third.cures, third.bad) == (("aten::mm",), {})
    assert found.smallest == "2.2"


def test_older_releases_are_no_upgrade() -> None:
    assert compared(1, mm=(KERNEL, MISSING, MISSING)).smallest is None


def test_unknown_is_not_good() -> None:
    unknown = {"status": "unknown", "evidence": None}
    assert compared(0, mm=(unknown, unknown, KERNEL)).smallest == "2.2"


def test_neighbours_that_do_the_same_share_a_line() -> None:
    text = upgrade_text([compared(0, mm=(MISSING, MISSING, KERNEL))])
    assert "2.0 – 2.1" in text
    assert text.endswith("wrong results: torch 2.2.\n")


def test_what_no_release_cures_is_named() -> None:
    text = upgrade_text([compared(0, mm=(MISSING, SILENT, SILENT), add=(KERNEL,) * 3)])
    assert "No known release cures everything" in text
    assert "torch 2.2 leaves aten::mm (fallback)." in text


def test_nothing_to_cure() -> None:
    assert "torch 2.0 leaves nothing to cure." in upgrade_text([compared(0, mm=(KERNEL,) * 3)])
