"""Functions as flat lists of statements."""

from __future__ import annotations

import ast

from scanner.locate.reading.scopes import Scope, calls_in, scopes
from scanner.locate.reading.trees import dotted, flat, imports, root_name

FILE = """
top = 1
def outer(x):
    y = 2
    if x:
        z = 3
    else:
        z = 4
    try:
        with open(x) as handle:
            w = 5
    except OSError:
        v = 6
    finally:
        u = 7
    while x:
        t = 8
    match x:
        case 1:
            s = 9
    def inner(q):
        r = y
    class Local:
        def method(self):
            self.a = 1
class Trainer:
    def __init__(self):
        self.model = make()
    def fit(self, n):
        self.model(n)
class Net:
    def forward(self, x):
        return self.fc(x)
"""


def by_name() -> dict[str, Scope]:
    return {scope.name: scope for scope in scopes(ast.parse(FILE), frozenset({"Net"}))}


def test_names() -> None:
    assert list(by_name()) == [
        "",
        "outer",
        "inner",
        "Local.method",
        "Trainer.__init__",
        "Trainer.fit",
        "Net.forward",
    ]


def test_nested_blocks_are_flattened_and_functions_are_not() -> None:
    assert list(by_name()["outer"].assigned) == ["y", "z", "handle", "w", "v", "u", "t", "s"]
    assert by_name()["outer"].assigned["handle"] == [None]
    assert len(by_name()["outer"].assigned["z"]) == 2


def test_a_nested_function_sees_what_is_around_it() -> None:
    inner = by_name()["inner"]
    assert {"y", "z", "r"} <= inner.assigned.keys()
    assert list(inner.params) == ["x", "q"]


def test_attributes_of_plain_classes_are_names() -> None:
    fit = by_name()["Trainer.fit"]
    assert "self.model" in fit.assigned
    ((_, call),) = calls_in(fit)
    assert isinstance(call.func, ast.Name)
    assert call.func.id == "self.model"


def test_attributes_of_modules_stay() -> None:
    ((_, call),) = calls_in(by_name()["Net.forward"])
    assert ast.unparse(call.func) == "self.fc"
    assert isinstance(call.func, ast.Attribute)


def test_calls_are_found_once_with_their_statement() -> None:
    calls = [(type(s).__name__, ast.unparse(c)) for s, c in calls_in(by_name()["outer"])]
    assert calls == [("With", "open(x)")]


def test_imports() -> None:
    tree = ast.parse(
        "import torch\nimport torch.nn as nn\nimport a.b\nfrom torch.nn import functional as F\n"
        "from . import x\nfrom .y import z\nfrom ..up import k as kk\n"
    )
    assert imports(tree) == {
        "torch": "torch",
        "nn": "torch.nn",
        "a": "a",
        "F": "torch.nn.functional",
        "x": ".x",
        "z": ".y.z",
        "kk": "..up.k",
    }


def test_chains() -> None:
    node = ast.parse("a.b.c(d).e[0]", mode="eval").body
    assert root_name(node) == "a"
    assert dotted(node) is None
    assert dotted(ast.parse("a.b.c", mode="eval").body) == "a.b.c"
    assert root_name(ast.parse("3", mode="eval").body) is None


def test_guards_can_be_left_closed() -> None:
    body = ast.parse("if __name__ == '__main__':\n    x = 1\nif y:\n    z = 2\n").body
    assert [type(s).__name__ for s in flat(body, guards=False)] == ["If", "If", "Assign"]
    assert len(list(flat(body))) == 4
