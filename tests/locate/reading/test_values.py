"""Expressions evaluated without running the user's functions."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

import pytest
import torch

from scanner.locate.reading.scopes import argparse_defaults, scopes
from scanner.locate.reading.values import Unresolved, Values

FILE = """
import argparse, dataclasses
import torch
from torch import nn

WIDTH = 64
@dataclasses.dataclass
class Config:
    depth: int = 3
class Plain:
    size = 7
def compute(): raise AssertionError("run")
def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", "-l", type=float, default=1e-3)
    parser.add_argument("--batch-size", default=WIDTH)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--slow", action="store_false", dest="quick")
    parser.add_argument("--path")
    return parser.parse_args()
def main(rate=0.5, cfg: Config = None, *, scale=2):
    args = get_args()
    parsed = argparse.ArgumentParser().parse_args()
    local = WIDTH * 2
    again = local
    again = again + 1
    a, b = 1, local
    config = Config(depth=4)
    for item in range(3):
        looped = 1
    total = 0
    total += item
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    model = nn.Linear(local, 2).to("cpu")
def called(first, second=9):
    pass
def caller():
    called(WIDTH, second=WIDTH + 1)
class Trainer:
    def __init__(self, lr=0.25):
        self.lr = lr
        self.cfg = Config()
    def fit(self):
        pass
if __name__ == "__main__":
    guarded = 11
"""


def values(scope: str, builds: bool = True) -> Values:
    tree = ast.parse(FILE)
    space: dict[str, Any] = {"__name__": __name__}
    exec(compile(tree, "model.py", "exec"), space)
    found = scopes(tree, frozenset())
    (wanted,) = [s for s in found if s.name == scope]
    return Values(wanted, space, tree, found, builds=builds)


def of(text: str, scope: str = "main") -> Any:
    return values(scope).of(ast.parse(text, mode="eval").body)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-WIDTH // 3 + 2 ** 3", -14),
        ("(1, [2, *[3]], {4})", (1, [2, 3], {4})),
        ("{'a': 1, **{'b': 2}}", {"a": 1, "b": 2}),
        ("'x' if WIDTH > 3 else 'y'", "x"),
        ("1 < 2 <= 2 and not False or 5", True),
        ("[1, 2, 3][1:]", [2, 3]),
        ("local", 128),
        ("a + b", 129),
        ("config.depth", 4),
        ("rate", 0.5),
        ("scale", 2),
        ("cfg.depth", 3),
        ("Plain.size", 7),
        ("Plain().size if False else 1", 1),
        ("parsed.lr", 1e-3),
        ("parsed.batch_size", 64),
        ("args.batch_size", 64),
        ("parsed.fast", False),
        ("parsed.quick", True),
        ("total", 0),
        ("guarded", 11),
        ("torch.float16", torch.float16),
        ("max(1, len('abc'))", 3),
        ("int(2.5)", 2),
        ("dict(a=1)", {"a": 1}),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert of(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "compute()",
        "unknown",
        "item",
        "parsed.path",
        "Plain()",
        "1 / 0",
        "[x for x in range(3)]",
        "f'{local}'",
        "open('x')",
    ],
)
def test_unresolved(text: str) -> None:
    with pytest.raises(Unresolved):
        of(text)


def test_modules_and_losses_are_built() -> None:
    assert of("criterion").label_smoothing == 0.1
    assert of("model").in_features == 128


def test_arguments_of_the_file_s_own_call() -> None:
    assert of("first", "called") == 64
    assert of("second", "called") == 65


def test_attributes_of_a_trainer() -> None:
    assert values("Trainer.fit").of(ast.Name(id="self.lr", ctx=ast.Load())) == 0.25
    node = ast.Attribute(
        value=ast.Name(id="self.cfg", ctx=ast.Load()), attr="depth", ctx=ast.Load()
    )
    assert values("Trainer.fit").of(node) == 3


def test_parameters_called_args_stand_for_the_command_line() -> None:
    tree = ast.parse(FILE + "def train(args): pass\n")
    found = scopes(tree, frozenset())
    train = Values(found[-1], {"WIDTH": 64}, tree, found)
    assert train.of(ast.parse("args.batch_size", mode="eval").body) == 64


def test_targets_are_found_without_building() -> None:
    node = ast.parse("nn.Linear", mode="eval").body
    assert values("main").target(node) is torch.nn.Linear
    assert values("main").target(ast.parse("model.forward", mode="eval").body) is None


def test_argparse_defaults() -> None:
    found = argparse_defaults(ast.parse(FILE))
    assert {name: ast.unparse(node) for name, node in found.items()} == {
        "lr": "0.001",
        "batch_size": "WIDTH",
        "fast": "False",
        "quick": "True",
    }


def test_recursion_ends() -> None:
    tree = ast.parse(textwrap.dedent("def f():\n    a = b\n    b = a\n"))
    found = scopes(tree, frozenset())
    with pytest.raises(Unresolved):
        Values(found[1], {}, tree, found).of(ast.Name(id="a", ctx=ast.Load()))
