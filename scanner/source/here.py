"""What a check may ask about the place where the walk stands."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from scanner.source.conditions import Condition, Guards, conditions, denies
from scanner.source.interface import Correction, Hit, Span
from scanner.source.module import Module
from scanner.source.names import Scope

if TYPE_CHECKING:
    from scanner.records import Severity, Target

__all__ = ["Here"]

NodeT = TypeVar("NodeT", bound=ast.AST)
AnswerT = TypeVar("AnswerT")

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_STEPS = frozenset({"training_step", "train_step", "compute_loss"})
"""Methods that a framework calls in its own training loop."""


class Here:
    """One place in one file. Valid only while the check runs."""

    def __init__(self, module: Module, targets: Sequence[Target] = ()) -> None:
        self.module = module
        self.targets = tuple(targets)
        """Releases and machines to judge for; empty when none is known."""
        self.name = ""
        """The key that the trigger matched: a qualified name, or a method's name."""
        self.path: list[ast.AST] = []
        """From the module down to the node, which is the last."""
        self.scopes: list[Scope] = [Scope(module.tree, None, module.globals)]
        """From the module's down to the innermost."""
        self._trains: dict[ast.AST, bool] = {}
        self._guards: Guards = {}
        self._known: dict[tuple[object, ast.AST], Any] = {}

    def once(self, question: Callable[[NodeT, Here], AnswerT], node: NodeT) -> AnswerT:
        """The answer to a question about a node alone, whatever stands where it is asked.

        Looking over a whole function for each finding in it would take quadratic time.
        """
        key = question, node
        if key not in self._known:
            self._known[key] = question(node, self)
        answer: AnswerT = self._known[key]
        return answer

    # Names and values

    def resolve(self, node: ast.AST) -> str | None:
        """The qualified name of an expression, through imports and aliases; see `Scope.resolve`."""
        return self.scopes[-1].resolve(node)

    def value(self, node: ast.expr) -> ast.expr:
        """What a variable was assigned, where it is assigned once; else the node itself."""
        return self.scopes[-1].value(node)

    def string(self, node: ast.expr | None) -> str | None:
        """The text that an expression is known to have: a literal, or a variable that holds one."""
        value = None if node is None else self.value(node)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value
        return None

    def maker(self, node: ast.expr) -> str | None:
        """What made a value: `torch.device` for `dev` after `dev = torch.device("cuda")`."""
        value = self.value(node)
        return self.resolve(value.func) if isinstance(value, ast.Call) else None

    @staticmethod
    def argument(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
        """An argument by keyword, or by position where no `*` precedes it."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        before = call.args[: position + 1] if position is not None else []
        starred = any(isinstance(each, ast.Starred) for each in before)
        return (
            before[-1] if position is not None and len(before) > position and not starred else None
        )

    # Where it stands

    @property
    def node(self) -> ast.AST:
        """The node that the check was called with."""
        return self.path[-1]

    @property
    def parent(self) -> ast.AST:
        """The node around it; the module is its own."""
        return self.path[-2] if len(self.path) > 1 else self.path[-1]

    @property
    def statement(self) -> ast.AST:
        """The innermost statement around the node, or the node."""
        return next((each for each in reversed(self.path) if isinstance(each, ast.stmt)), self.node)

    @property
    def scope(self) -> str:
        """`Net.forward`; empty at module level."""
        return ".".join(node.name for node in self.path if isinstance(node, _NAMED))

    @property
    def at_module_level(self) -> bool:
        """Whether it runs when the file is imported, class bodies included."""
        return not any(isinstance(node, _FUNCTIONS) for node in self.path)

    @property
    def function(self) -> ast.AST | None:
        """The innermost function, lambda or none."""
        return next(
            (each for each in reversed(self.path[:-1]) if isinstance(each, _FUNCTIONS)), None
        )

    @property
    def loops(self) -> list[ast.AST]:
        """Loops and comprehensions of the same function around the node, the innermost first."""
        return list(self._loops())

    @property
    def in_loop(self) -> bool:
        """Whether it runs several times each time that its function is called."""
        return next(self._loops(), None) is not None

    @property
    def in_training_loop(self) -> bool:
        """Whether it runs once a step.

        A training loop calls `.backward()`, or an optimizer's `.step()` after `.zero_grad()`. A
        function that does so is a step itself, as is Lightning's `training_step`.
        """
        inner = [*self._loops(), *([self.function] if self.function else [])]
        return any(self._is_training(node) for node in inner)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What has been tested on the way here; see `scanner.source.conditions`."""
        return tuple(conditions(self.path, self._guards))

    def guarded_by(self, *qualified: str) -> bool:
        """Whether a call or name is known to be true here: `torch.cuda.is_available`."""
        return any(holds and self._asks(test, qualified) for test, holds in self.conditions)

    @property
    def only_on_cuda(self) -> bool:
        """Whether something about CUDA was tested on the way here and found true.

        `if torch.cuda.is_available()`, `if args.cuda`, `if device.type == "cuda"`, in any spelling;
        what follows `if device.type != "cuda": return`, too.
        """
        return any(
            holds is not denies(test) and self._mentions_cuda(test)
            for test, holds in self.conditions
        )

    def after_import(self, module: str) -> bool:
        """Whether the file has imported a module, or something in it, in an earlier statement.

        Imports inside functions count where the function is the node's own.
        """
        line = getattr(self.node, "lineno", 0)
        return any(first < line for first in self._imported_at(module))

    # Saying something

    def hit(
        self,
        node: ast.AST | Span,
        message: str,
        remedy: str,
        *,
        severity: Severity | None = None,
        correction: Correction | None = None,
        links: tuple[str, ...] = (),
    ) -> Hit:
        """A hit at a node of this file."""
        span = node if isinstance(node, Span) else self.module.span(node)
        return Hit(span, message, remedy, self.scope, severity, correction, links=links)

    def _loops(self) -> Iterator[ast.AST]:
        for node, child in zip(self.path[-2::-1], self.path[::-1], strict=False):
            if isinstance(node, _FUNCTIONS):
                return
            in_head = isinstance(node, ast.For | ast.AsyncFor) and child in (node.iter, node.target)
            if isinstance(node, _COMPREHENSIONS) or (isinstance(node, _LOOPS) and not in_head):
                yield node

    def _is_training(self, node: ast.AST) -> bool:
        if node not in self._trains:
            self._trains[node] = getattr(node, "name", "") in _STEPS or _trains(node)
        return self._trains[node]

    def _asks(self, test: ast.expr, qualified: tuple[str, ...]) -> bool:
        value = self.value(test)
        return self.resolve(value.func if isinstance(value, ast.Call) else value) in qualified

    def _mentions_cuda(self, test: ast.expr) -> bool:
        said = self.module.source(test) + self.module.source(self.value(test))
        return "cuda" in said.lower()

    def _imported_at(self, module: str) -> Iterator[int]:
        blocks = [self.module.tree, *([self.function] if self.function else [])]
        for block in blocks:
            for node in _statements(block):
                if isinstance(node, ast.Import):
                    found = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    found = [node.module or ""]
                else:
                    continue
                if any(f"{name}.".startswith(f"{module}.") for name in found):
                    yield node.lineno


_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _trains(node: ast.AST) -> bool:
    """Whether `.backward()`, or `.step()` and `.zero_grad()`, are called in it."""
    called = {
        each.func.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)
    }
    return "backward" in called or {"step", "zero_grad"} <= called


def _statements(block: ast.AST) -> Iterator[ast.stmt]:
    """Statements of a module or function, those of blocks in it included, not of scopes within."""
    for child in ast.iter_child_nodes(block):
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, ast.stmt | ast.ExceptHandler) and not isinstance(child, _NAMED):
            yield from _statements(child)
