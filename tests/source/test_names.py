"""What names are taken to mean."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.source.names import Scope

TABLE = [
    ("import torch", "torch.cuda", "torch.cuda"),
    ("import torch.cuda.amp", "torch.float64", "torch.float64"),
    ("import torch as t", "t.device", "torch.device"),
    ("import torch.nn.functional as F", "F.gelu", "torch.nn.functional.gelu"),
    ("from torch import cuda", "cuda.amp.autocast", "torch.cuda.amp.autocast"),
    ("from torch.cuda import amp as a", "a", "torch.cuda.amp"),
    ("import torch\namp = torch.cuda.amp", "amp.GradScaler", "torch.cuda.amp.GradScaler"),
    ("import torch\na = b = torch.cuda", "b.synchronize", "torch.cuda.synchronize"),
    ("import torch\na, b = torch.cuda, 1", "a.amp", "torch.cuda.amp"),
    ("try:\n import torch as t\nexcept ImportError:\n t = None", "t.cuda", "torch.cuda"),
    ("from . import torch", "torch.cuda", ".torch.cuda"),
    ("from .a import torch", "torch.cuda", ".a.torch.cuda"),
    ("", "print", "builtins.print"),
    ("", "torch.cuda", None),
    ("import torch\ntorch = fake()", "torch.cuda", None),
    ("from torch import amp\nfrom apex import amp", "amp", None),
    ("import torch\nfor torch in things: pass", "torch.cuda", None),
    ("import torch\nwith fake() as torch: pass", "torch.cuda", None),
    ("print = log", "print", None),
    ("a = b\nb = a", "a.cuda", None),
    ("match x:\n case {'k': torch}: pass", "torch.cuda", None),
    ("import torch", "torch.zeros(3).cuda", None),
]


@pytest.mark.parametrize(("code", "expression", "qualified"), TABLE)
def test_what_an_expression_names(code: str, expression: str, qualified: str | None) -> None:
    scope = Scope(ast.parse(code), None, frozenset())
    assert scope.resolve(ast.parse(expression, mode="eval").body) == qualified


def inner(code: str) -> Scope:
    """The scope of the last statement, a function, in that of the module."""
    tree = ast.parse(code)
    function = tree.body[-1]
    around = Scope(tree, None, frozenset())
    if isinstance(function, ast.ClassDef):
        around = Scope(function, around, frozenset())
        function = function.body[-1]
    return Scope(function, around, frozenset())


def test_functions_see_the_module_but_not_the_class_around_them() -> None:
    code = "import torch\nclass A:\n import torch.cuda as c\n def f(self): pass"
    assert inner(code).resolve(ast.parse("torch.float", mode="eval").body) == "torch.float"
    assert inner(code).resolve(ast.parse("c.amp", mode="eval").body) is None


def test_parameters_hide_what_is_outside() -> None:
    scope = inner("import torch\ndef f(torch, *cuda): pass")
    assert scope.resolve(ast.parse("torch.float", mode="eval").body) is None


def test_a_variable_has_a_value_where_it_is_assigned_once() -> None:
    once = Scope(ast.parse("n = 'cuda'\nm = n"), None, frozenset())
    twice = Scope(ast.parse("n = 'cuda'\nn = 'cpu'"), None, frozenset())
    assert ast.literal_eval(once.value(ast.Name("m"))) == "cuda"
    assert isinstance(twice.value(ast.Name("n")), ast.Name)


def test_names_that_a_function_declares_global_have_no_single_value() -> None:
    tree = ast.parse("n = 'cuda'\ndef f():\n global n\n n = 'cpu'")
    module = Scope(tree, None, frozenset({"n"}))
    within = Scope(tree.body[1], module, frozenset({"n"}))
    assert isinstance(module.value(ast.Name("n")), ast.Name)
    assert isinstance(within.value(ast.Name("n")), ast.Name)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=6))
def test_chains_of_aliases_end(names: list[str]) -> None:
    code = "\n".join(
        f"{left} = {right}" for left, right in zip(names, names[1:] or ["a"], strict=False)
    )
    scope = Scope(ast.parse(code), None, frozenset())
    assert scope.resolve(ast.Name(names[0])) is None
