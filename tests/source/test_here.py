"""What a check learns about the place where it stands."""

from __future__ import annotations

import ast
import textwrap

import pytest

from scanner.source.check import Checker
from scanner.source.here import Here
from scanner.source.interface import Hit, source_rule
from scanner.source.module import Module
from scanner.source.triggers import calls, imports, methods, names, nodes


def places(code: str) -> dict[str, list[str]]:
    """Mark → what is true where `mark("...")` is called."""
    told: dict[str, list[str]] = {}

    @source_rule("OPS699", "probe", "note", since="0.1.0", on=[nodes(ast.Call)], tokens=["mark"])
    def probe(node: ast.AST, here: Here) -> Hit | None:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "mark":
            flags = ("in_loop", "in_training_loop", "at_module_level", "only_on_cuda")
            facts = [flag for flag in flags if getattr(here, flag)]
            facts += [name for name in ["torch"] if here.after_import(name)]
            facts += ["mps"] if here.guarded_by("torch.backends.mps.is_available") else []
            told[ast.literal_eval(node.args[0])] = [*facts, here.scope]
        return None

    Checker([probe]).hits(Module(textwrap.dedent(code)))
    return told


def test_loops_end_at_functions_and_begin_behind_their_head() -> None:
    told = places(
        """
        for x in mark("head"):
            mark("body")
            def f(a=mark("default")):
                mark("function")
                while mark("test"): pass
            [mark("comprehension") for y in x]
        """
    )
    assert {name: "in_loop" in facts for name, facts in told.items()} == {
        "head": False,
        "body": True,
        "default": True,
        "function": False,
        "test": True,
        "comprehension": True,
    }


def test_training_loops_go_backward() -> None:
    told = places(
        """
        for epoch in range(3):
            mark("epoch")
            for x in data:
                loss.backward()
                mark("step")
        for x in data:
            mark("evaluation")
        def train_one():
            optimizer.zero_grad(); optimizer.step()
            mark("function")
        class M(LightningModule):
            def training_step(self, batch):
                mark("lightning")
            def forward(self): mark("forward")
        """
    )
    training = {name for name, facts in told.items() if "in_training_loop" in facts}
    assert training == {"epoch", "step", "function", "lightning"}
    assert told["lightning"][-1] == "M.training_step"


def test_conditions_are_known_where_they_hold() -> None:
    told = places(
        """
        import torch
        from torch.backends import mps
        use = torch.cuda.is_available()
        if torch.cuda.is_available():
            mark("if")
        elif mps.is_available():
            mark("elif")
        else:
            mark("else")
        if not args.no_cuda: mark("double negation")
        use and mark("and")
        use or mark("or")
        x = mark("expression") if device.type == "cuda" else mark("otherwise")
        def f():
            if not use:
                return
            mark("returned")
        """
    )
    cuda = {name for name, facts in told.items() if "only_on_cuda" in facts}
    assert cuda == {"if", "and", "expression", "returned"}
    assert [name for name, facts in told.items() if "mps" in facts] == ["elif"]


def test_imports_come_before_what_follows_them() -> None:
    told = places(
        """
        mark("before")
        try:
            import torch.nn as nn
        except ImportError: pass
        mark("after")
        def f(): mark("function")
        class A:
            from x import mark
            mark("class")
        """
    )
    assert {name for name, facts in told.items() if "torch" in facts} == {
        "after",
        "function",
        "class",
    }
    assert "at_module_level" in told["class"]
    assert "at_module_level" not in told["function"]


def test_triggers_hear_what_they_name() -> None:
    heard: list[tuple[str, str]] = []

    @source_rule(
        "OPS699",
        "probe",
        "note",
        since="0.1.0",
        on=[
            calls("torch.device", "torch.cuda.*"),
            methods("cuda"),
            names("torch.float64", "torch.cuda.amp.*"),
            imports("bitsandbytes"),
        ],
    )
    def probe(node: ast.AST, here: Here) -> None:
        heard.append((type(node).__name__, here.name))

    code = """
        import bitsandbytes.optim as bo, torch
        from bitsandbytes import nn
        import bitsandbytesque
        torch.device("cpu"), torch.cuda.synchronize(), torch.cuda(), x.y.cuda(), torch.devices()
        torch.float64.itemsize
        with torch.cuda.amp.autocast: pass
        """
    Checker([probe]).hits(Module(textwrap.dedent(code)))
    assert heard == [
        ("alias", "bitsandbytes.optim"),
        ("alias", "bitsandbytes.nn"),
        ("Call", "torch.device"),
        ("Call", "torch.cuda.synchronize"),
        ("Call", "torch.cuda"),
        ("Call", "cuda"),
        ("Attribute", "torch.float64"),
        ("Attribute", "torch.cuda.amp.autocast"),
    ]


def test_a_rule_about_nodes_must_say_what_files_it_can_leave_unparsed() -> None:
    with pytest.raises(ValueError, match="give it tokens"):
        source_rule("OPS699", "x", "note", since="0.1.0", on=[nodes(ast.Call)])


def test_places_are_counted_in_characters() -> None:
    module = Module("é = '''😀\n'''; x.cuda(\f1)\n")
    call = next(node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    assert module.source(call) == "x.cuda(\f1)"
    assert module.span(call) == (2, 6, 2, 16)
    assert module.span(module.tree) == (1, 1, 1, 1)


def test_arguments_are_found_by_name_and_by_place() -> None:
    call = ast.parse("f(1, *a, 2, k=3)").body[0].value  # type: ignore[attr-defined]
    found = [Here.argument(call, *which) for which in [("x", 0), ("x", 2), ("k", 9), ("x",)]]
    assert [each and ast.unparse(each) for each in found] == ["1", None, "3", None]
