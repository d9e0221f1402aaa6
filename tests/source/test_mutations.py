"""Code of the rules' own tests, shuffled and mixed: no rule may fail on any of it."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from scanner.records import Target
from scanner.source.check import Checker
from scanner.source.read import examine
from scanner.source.rules import RULES

LINES = [
    line
    for path in sorted((Path(__file__).parent / "rules").glob("*.txt"))
    for line in path.read_text().splitlines()
    if line != "----"
]
WORD = re.compile(r"\w+|[^\w\s]")
CHECKER = Checker(RULES, [Target(framework="torch", version="2.4.1")])


def mutated(seed: int) -> str:
    """Lines of several rules in any order, one token in some of them replaced by another."""
    random = Random(seed)
    lines = ["import torch, os, numpy as np", *random.choices(LINES, k=random.randint(2, 25))]
    for _ in range(random.randint(0, 4)):
        at = random.randrange(len(lines))
        others = WORD.findall(random.choice(LINES)) or ["x"]
        found = list(WORD.finditer(lines[at]))
        if found:
            start, end = random.choice(found).span()
            lines[at] = lines[at][:start] + random.choice(others) + lines[at][end:]
    kept = [line for line in lines if _is_python(line)]
    return "\n".join(kept)


def _is_python(line: str) -> bool:
    try:
        compile(line, "line", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("first", range(0, 100, 50))
def test_no_rule_fails_on_mixed_code(first: int) -> None:
    for seed in range(first, first + 50):
        trouble = examine(mutated(seed).encode(), CHECKER).trouble
        assert trouble is None or not trouble.traceback, trouble
