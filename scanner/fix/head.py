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
_NAMES = ("device", "default_device", "chosen_device")


class Head:
    """Where definitions can be added to a file, and what its names are."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.body = module.tree.body

    def completed(self, changes: Iterable[Change]) -> list[Change]:
        """Changes as they can be made: the device named, what they rely on added.

        One more change at the end adds what is missing. Changes that cannot have what they rely on,
        as where `torch` is something else in this file, are left out.
        """
        found: list[Change] = []
        added: dict[str, None] = {}
        for change in changes:
            needs = self._needs(change)
            if needs is None or (needs and self._is_above(change)):
                continue
            added.update(dict.fromkeys(needs))
            found.append(change._replace(edits=tuple(self._named(edit) for edit in change.edits)))
        if added:
            # Imports first: the device is chosen with what they bring.
            lines = sorted(added, key=lambda line: not line.startswith("import"))
            edits = (self._insertion(lines),)
            found.append(Change("", Span(1, 1, 1, 1), edits))
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

    def _is_above(self, change: Change) -> bool:
        """Whether a change stands in front of the place where definitions are added."""
        place = self._insertion([]).span
        imports = [self.module.span(node) for node in self.body if isinstance(node, _IMPORTS)]
        return any(
            edit.span[:2] < place[:2]
            and not any(each[:2] <= edit.span[:2] < each[2:] for each in imports)
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

    # Where definitions go

    @cached_property
    def _last(self) -> ast.stmt | None:
        """The statement below which definitions are added; None for the beginning of the file."""
        last = self.body[0] if self.body and _is_text(self.body[0]) else None
        start = self._start
        for node in self.body[self.body.index(start) if start else int(last is not None) :]:
            if not _is_head(node):
                break
            last = node
        return last

    @cached_property
    def _start(self) -> ast.stmt | None:
        """The import that brings torch, or else the first one of anything of it."""
        torch = [node for node in self.body if _is_of_torch(node)]
        named = (node for node in torch if self._torch in _binds(node))
        return next(named, torch[0] if torch else None)

    def _insertion(self, lines: list[str]) -> Edit:
        after = self._last
        index = 0 if after is None else self.body.index(after) + 1
        following = self.body[index] if index < len(self.body) else None
        end = 0 if after is None else after.end_lineno or 0
        if following is not None and following.lineno == end:  # both on one line
            place = self.module.span(following)
            text = "".join(f"{_on_one_line(line)}; " for line in lines)
            return Edit(Span(place.line, place.column, place.line, place.column), text)
        if after is None:
            line = min(_first_line(following), len(self.module.lines)) if following else 1
            return Edit(Span(line, 1, line, 1), f"{_lines(lines)}\n")
        return self._below(end, lines, is_import=isinstance(after, _IMPORTS))

    def _below(self, end: int, lines: list[str], *, is_import: bool) -> Edit:
        joins = is_import and lines[:1] != [] and lines[0].startswith("import")
        text = _lines(lines) if joins else f"\n{_lines(lines)}"
        if end < len(self.module.lines):
            return Edit(Span(end + 1, 1, end + 1, 1), text)
        column = len(self.module.lines[end - 1]) + 1
        return Edit(Span(end, column, end, column), "\n" + text.removesuffix("\n"))


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


def _lines(statements: list[str]) -> str:
    """Imports, then a blank line, then the rest."""
    imports = [f"{each}\n" for each in statements if each.startswith("import")]
    rest = [f"{each}\n" for each in statements if not each.startswith("import")]
    return "".join([*imports, *(["\n"] if imports and rest else []), *rest])


def _on_one_line(statement: str) -> str:
    return " ".join(statement.split()).replace("( ", "(").replace(" )", ")")


def _is_of_torch(node: ast.AST) -> bool:
    """Whether it imports torch, or something in it."""
    match node:
        case ast.Import(names=aliases):
            return any(alias.name.partition(".")[0] == "torch" for alias in aliases)
        case ast.ImportFrom(module=str() as module, level=0):
            return module.partition(".")[0] == "torch"
    return False


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_head(node: ast.stmt) -> bool:
    """An import, or a block of nothing else: `try: import apex`."""
    if isinstance(node, _IMPORTS):
        return True
    if not isinstance(node, ast.Try | ast.If):
        return False
    handlers = node.handlers if isinstance(node, ast.Try) else []
    final = node.finalbody if isinstance(node, ast.Try) else []
    blocks = [node.body, node.orelse, final, *(handler.body for handler in handlers)]
    return all(isinstance(each, (*_IMPORTS, ast.Pass)) for block in blocks for each in block)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


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
