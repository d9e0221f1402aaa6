"""What must hold of every file: corrected, it parses, is stable, and has lost nothing else."""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter

from scanner.fix.files import FixedFile, fix_content
from scanner.fix.mend import Mender
from scanner.source.decode import decoded
from scanner.source.module import Module
from scanner.source.work import checker_for
from tests.fix.programs import Program, program

__all__ = ["check_program"]

MENDERS = tuple(
    Mender(checker_for(()), unsafe=unsafe, accepts=lambda found, _: [False] * len(found))
    for unsafe in (False, True)
)


def comments(text: str) -> Counter[str]:
    lines = io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n"))
    tokens = tokenize.generate_tokens(lines.readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


def ends(text: str) -> set[str]:
    return set(re.findall("\r\n|\r|\n", text))


def compiles(text: str) -> bool:
    try:
        compile(text, "", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def check_program(made: Program, mender: Mender) -> FixedFile | None:
    """Raises `AssertionError`; None for a program that is no Python."""
    old = decoded(made.content)
    if not compiles(old.text):
        return None
    fixed = fix_content(made.content, mender)
    assert not fixed.trouble
    new = decoded(fixed.new)
    Module(new.text)
    assert (new.encoding, new.marked) == (old.encoding, old.marked)
    assert fix_content(fixed.new, mender).new == fixed.new
    assert compiles(new.text)
    assert comments(new.text) == comments(old.text)
    lines = Module(new.text).lines
    places = [lines.index(line) for line in made.kept]
    assert places == sorted(places)
    assert ends(new.text) <= ends(old.text) or not ends(old.text)
    assert old.text.endswith(("\n", "\r")) == new.text.endswith(("\n", "\r"))
    return fixed


def test_generated_files_stay_python_and_keep_the_rest() -> None:
    done = [check_program(program(seed), mender) for seed in range(60) for mender in MENDERS]
    fixed = [each for each in done if each is not None]
    assert len(fixed) > 80
    assert sum(each.new != each.old for each in fixed) > 20
