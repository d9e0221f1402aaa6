"""Generated and damaged files: never an error of ours, and every place exists."""

from __future__ import annotations

import textwrap

from hypothesis import given
from hypothesis import strategies as st

from scanner.records import Target
from scanner.source.check import Checker
from scanner.source.decode import decode
from scanner.source.module import Module
from scanner.source.read import examine
from scanner.source.rules import rules_for

CHECKER = Checker(rules_for([Target(framework="torch", version="2.5.1")]))
EXPRESSIONS = st.recursive(
    st.sampled_from(
        ["torch", "x", "'cuda'", "'é😀'", "torch.float64", "t.cuda.amp", "self.y", "0", "kthvalue"]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("{0[0]}({0[1]}, device={0[1]})".format),
        inner.map("{}.cuda()".format),
        inner.map("[{} for x in y]".format),
        inner.map("(lambda torch=1: {})".format),
        st.tuples(inner, inner).map("({0[0]} if {0[1]} else {0[1]})".format),
        inner.map("f'{{{}!r}}'".format).filter(lambda text: "'" not in text[2:-1]),
    ),
    max_leaves=6,
)
STATEMENTS = st.recursive(
    st.one_of(
        EXPRESSIONS,
        EXPRESSIONS.map("x = {}".format),
        st.sampled_from(
            [
                "import torch as t, torch.nn",
                "from torch import *",
                "from . import torch",
                "from torch import kthvalue, device as x",
                "global x",
                "del x",
                "torch: int",
                "(x := torch)",
            ]
        ),
    ),
    lambda inner: st.tuples(
        st.sampled_from(
            [
                *("if x:", "for x in torch:", "while x:", "with x as torch:", "class A(torch):"),
                *("def f(torch=torch.cuda()):", "async def f(*x, **y):", "try:\n    0\nfinally:"),
                "match x:\n  case [torch, *x]:",
            ]
        ),
        st.lists(inner, min_size=1, max_size=3),
    ).map(lambda parts: parts[0] + "\n" + textwrap.indent("\n".join(parts[1]), "    ")),
    max_leaves=8,
)
PROGRAMS = st.lists(STATEMENTS, max_size=6).map(lambda body: "\n".join(["import torch", *body]))


def check(content: bytes) -> None:
    examined = examine(content, CHECKER)
    assert examined.trouble is None or not examined.trouble.traceback
    if not examined.findings:
        return
    lines = Module(decode(content)).lines
    for finding in examined.findings:
        place = finding.location
        assert place is not None
        assert place.code == lines[place.line - 1].strip()
        assert place.column is not None
        assert place.end_line is not None
        assert place.end_column is not None
        assert 1 <= place.column <= len(lines[place.line - 1])
        assert (place.line, place.column) < (place.end_line, place.end_column)
        assert place.end_column <= len(lines[place.end_line - 1]) + 1


@given(PROGRAMS)
def test_any_program_is_judged(program: str) -> None:
    check(program.encode())


@given(PROGRAMS, st.data())
def test_a_damaged_program_is_judged_or_refused(program: str, data: st.DataObject) -> None:
    content = program.encode()
    place = data.draw(st.integers(0, len(content)))
    noise = data.draw(st.binary(max_size=4))
    cut = data.draw(st.integers(0, 8))
    check(content[:place] + noise + content[place + cut :])
