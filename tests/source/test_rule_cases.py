"""Every rule on code of its own: `tests/source/rules/ID.txt`.

Blocks between lines of dashes are files. A line that ends in `# hit` must be found, all others must
not. The first line may name the targets: `# targets: torch==2.4.1`.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from opdb import query
from scanner.records import Target
from scanner.source.interface import Correction
from scanner.source.module import Module
from scanner.source.rules import RULES, autocast_devices, speedups
from tests.source.cases import assert_hits, hits_of

FOLDER = Path(__file__).parent / "rules"
FILES = sorted(FOLDER.glob("*.txt"))
ELSEWHERE = frozenset({"OPS601", "OPS680", "OPS681"})
"""Rules whose tests are functions in other files."""
_TARGETS = "# targets: "


def blocks(path: Path) -> list[tuple[str, list[Target]]]:
    found = []
    for text in path.read_text().split("----\n"):
        first, _, _ = text.partition("\n")
        named = first.removeprefix(_TARGETS).split() if first.startswith(_TARGETS) else []
        releases = [each.partition("==")[2] for each in named]
        found.append((text, [Target(framework="torch", version=each) for each in releases]))
    return found


def test_every_rule_has_code_that_it_finds_and_code_that_it_leaves() -> None:
    assert {path.stem for path in FILES} | ELSEWHERE == {rule.id for rule in RULES} | ELSEWHERE
    for path in FILES:
        lines = [line for text, _ in blocks(path) for line in text.splitlines()]
        assert any("# hit" in line for line in lines), path.stem
        assert sum("# hit" not in line for line in lines) > 1, path.stem


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_rule_finds_what_is_marked(path: Path) -> None:
    for text, targets in blocks(path):
        assert_hits(path.stem, text, targets)


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_corrected_code_is_python_and_is_not_found_again(path: Path) -> None:
    for text, targets in blocks(path):
        module, hits = hits_of(path.stem, text, targets)
        for each in hits:
            correction = each.hit.correction
            if correction is None or not correction.edits:
                continue
            mended = applied(module, correction)
            ast.parse(mended)
            _, left = hits_of(path.stem, mended, targets)
            assert len(left) < len(hits), (mended, correction)


def applied(module: Module, correction: Correction) -> str:
    lines = list(module.lines)
    for edit in sorted(correction.edits, reverse=True):
        line, column, end_line, end_column = edit.span
        joined = lines[line - 1][: column - 1] + edit.text + lines[end_line - 1][end_column - 1 :]
        lines[line - 1 : end_line] = [joined]
    return "\n".join(lines)


@pytest.mark.parametrize("release", ["2.4.1", "2.5.0", "2.15.0"])
def test_what_is_said_of_fused_optimizers_is_in_the_database(release: str) -> None:
    has = tuple(map(int, release.split(".")[:2])) >= speedups.FUSED_SINCE
    for op in speedups.FUSED.values():
        assert (query.lookup(f"aten::{op}", release).status == "native") is has
    for op in speedups.NEVER_FUSED.values():
        assert query.lookup(f"aten::{op}", release).status != "native"


@pytest.mark.parametrize("release", ["2.7.1", "2.8.0"])
def test_what_is_said_of_the_gradient_scaler_is_in_the_database(release: str) -> None:
    has = tuple(map(int, release.split(".")[:2])) >= autocast_devices.SCALER_SINCE
    for op in ("_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"):
        assert (query.lookup(f"aten::{op}", release).status == "native") is has
