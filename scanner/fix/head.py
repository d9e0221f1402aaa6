"""The head of a file: its imports, and the device that is chosen below them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain, count

from scanner.fix.edits import Change
from scanner.source.interface import DEVICE, Edit, Span
from scanner.source.module import Module

__all__ = ["Head"]

_IMPORTS = (ast.Import, ast.ImportFrom)
_IMPORT = "import "
_NAMES = ("device", "default_device", "chosen_device")


class Head:
    """Where definitions can be added to a file, and what its names are."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.body = module.tree.body
        self._insertions: dict[frozenset[str], Edit | None] = {}

    def completed(self, changes: Iterable[Change]) -> list[Change]:
        """Changes as they can be made: the device named, what they rely on added.

        One more change at the end adds what is missing. Changes that cannot have what they rely on,
        as where `torch` is something else in this file, are left out.
        """
        found: list[Change] = []
        added: dict[str, None] = {}
        for change in changes:
            needs = self._needs(change)
            if needs is None or (needs and not self._can_add(needs, change)):
                continue
            added.update(dict.fromkeys(needs))
            found.append(change._replace(edits=tuple(self._named(edit) for edit in change.edits)))
        if added and (edit := self._insertion(frozenset(added))) is not None:
            found.append(Change("", Span(1, 1, 1, 1), (edit,)))
        return found

    # What a change relies on

    def _needs(self, change: Change) -> list[str] | None:
        """Statements to add for a change; None where they would not mean what they say."""
        imports = list(change.imports)
        device: list[str] = []
        places = [edit.span for edit in change.edits if DEVICE in edit.text]
        if places:
            name, defined = self._device
            if defined is None:
                device = [_definition(name, self._torch)]
                imports += [f"import {self._torch}"] if self._torch == "torch" else []
            elif not _precedes(defined, min(places)):
                return None
        lacks = [self._lacking(each, change) for each in dict.fromkeys(imports)]
        if any(each is None for each in lacks):
            return None
        return [*(each for each in lacks if each), *device]

    def _lacking(self, statement: str, change: Change) -> str | None:
        """An import unless the file has it above the change; None where its name is taken."""
        (node,) = ast.parse(statement).body
        name = statement.rpartition(" ")[2]
        found = self._bound.get(name, [])
        same = [each for each in found if isinstance(each, _IMPORTS) and _brings(each, node)]
        if len(same) < len(found):
            return None
        first = min(edit.span for edit in change.edits)
        above = (self.module.span(each) for each in same if each in self.body)
        if any(_precedes(each, first) for each in above):
            return ""
        return None if found else statement

    def _can_add(self, needs: Iterable[str], change: Change) -> bool:
        """Whether additions are possible, and come above what relies on them."""
        addition = self._insertion(frozenset(needs))
        if addition is None:
            return False
        place = addition.span
        imports = [self.module.span(node) for node in self.body if isinstance(node, _IMPORTS)]
        return all(
            edit.span[:2] >= place[:2]
            or any(each[:2] <= edit.span[:2] < each[2:] for each in imports)
            for edit in change.edits
        )

    def _named(self, edit: Edit) -> Edit:
        return edit._replace(text=edit.text.replace(DEVICE, self._device[0]))

    # What the file has

    @cached_property
    def _bound(self) -> dict[str, list[ast.AST]]:
        """Name → nodes that bind it, in any scope."""
        found: dict[str, list[ast.AST]] = {}
        for node in ast.walk(self.module.tree):
            for name in _binds(node):
                found.setdefault(name, []).append(node)
        return found

    @cached_property
    def _torch(self) -> str:
        """The name by which the head of the file knows torch, or could."""
        for node in self.body:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname
                    if alias.name == "torch" and name and len(self._bound[name]) == 1:
                        return name if "torch" not in self._bound else "torch"
        return "torch"

    @cached_property
    def _device(self) -> tuple[str, Span | None]:
        """The device's name, and where it is defined, if it is."""
        for node in self.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                alone = len(node.targets) == 1 and len(self._bound[name]) == 1
                if alone and self._chooses(node.value):
                    return name, self.module.span(node)
        used = {node.id for node in ast.walk(self.module.tree) if isinstance(node, ast.Name)}
        more = (f"device_{number}" for number in count(2))
        free = (name for name in chain(_NAMES, more) if name not in used | self._bound.keys())
        return next(free), None

    def _chooses(self, value: ast.expr) -> bool:
        """Whether it is `torch.device(... if ... else ...)` that may be any of the three."""
        match value:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="device"), args=[ast.IfExp() as of]
            ):
                known = all(_is_of_torch(node) for node in self._bound.get(name, [value]))
                said = ast.unparse(of)
                return known and all(f"'{each}'" in said for each in ("cuda", "mps", "cpu"))
        return False

    @cached_property
    def _below(self) -> int | None:
        """What additions come below: torch by its name, or anything of it, or the docstring."""
        torch = [at for at, node in enumerate(self.body) if _is_of_torch(node)]
        named = [at for at in torch if self._torch in _binds(self.body[at])]
        text = [0] if ast.get_docstring(self.module.tree, clean=False) is not None else []
        return next(iter([*named, *torch, *text]), None)

    def _insertion(self, statements: frozenset[str]) -> Edit | None:
        """What adds statements to the file; None where that is not possible."""
        from scanner.fix.additions import Additions, insertion

        if statements not in self._insertions:
            imports = sorted(each for each in statements if each.startswith(_IMPORT))
            modules = tuple(each.removeprefix(_IMPORT) for each in imports)
            rest = tuple(sorted(statements.difference(imports)))
            wanted = Additions(modules, rest, self._below)
            self._insertions[statements] = insertion(self.module, wanted)
        return self._insertions[statements]


def _definition(name: str, torch: str) -> str:
    return (
        f"{name} = {torch}.device(\n"
        '    "cuda"\n'
        f"    if {torch}.cuda.is_available()\n"
        '    else "mps"\n'
        f"    if {torch}.backends.mps.is_available()\n"
        '    else "cpu"\n'
        ")"
    )


def _precedes(first: Span, second: Span) -> bool:
    return first[2:] <= second[:2]


def _is_of_torch(node: ast.AST) -> bool:
    """Whether it imports torch, or something in it."""
    match node:
        case ast.Import(names=aliases):
            return any(alias.name.partition(".")[0] == "torch" for alias in aliases)
        case ast.ImportFrom(module=str() as module, level=0):
            return module.partition(".")[0] == "torch"
    return False


def _brings(found: ast.Import | ast.ImportFrom, wanted: ast.stmt) -> bool:
    """Whether an import brings the name that another one brings, for the same thing."""
    if not isinstance(found, ast.Import) or not isinstance(wanted, ast.Import):
        return False
    name = wanted.names[0].name
    return any(
        alias.asname in (None, name) and alias.name.partition(".")[0] == name
        for alias in found.names
    )


def _binds(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str() as name):
            yield name
        case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
            yield name
        case ast.MatchMapping(rest=str() as name):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in aliases)
