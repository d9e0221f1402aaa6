"""Rules, sorted by what they listen to."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from scanner.source.interface import SourceRule

__all__ = ["Listeners"]


class Listeners:
    """Tables from what the walk meets to the rules that hear of it."""

    def __init__(self, rules: Iterable[SourceRule]) -> None:
        self.nodes: dict[type[ast.AST], list[SourceRule]] = {}
        self._keyed: dict[str, dict[str, list[SourceRule]]] = {
            kind: {} for kind in ("call", "method", "name", "import")
        }
        for rule in rules:
            self._add(rule)
        self.method = self._keyed["method"]
        """Method name → rules."""
        self.last_names = frozenset(
            key.rpartition(".")[2] for kind in ("call", "name") for key in self._keyed[kind]
        )
        """Last parts of names that rules listen to; `*` when any of them takes all below a name."""

    def of_call(self, name: str) -> Iterator[SourceRule]:
        """Rules about calls of a qualified name."""
        table = self._keyed["call"]
        yield from table.get(name, ())
        yield from _below(table, name)

    def of_name(self, name: str, *, longest: bool) -> Iterator[SourceRule]:
        """Rules about mentions of a qualified name; `longest` when no attribute follows it."""
        table = self._keyed["name"]
        yield from table.get(name, ())
        if longest:
            yield from _below(table, name)

    def of_import(self, name: str) -> Iterator[SourceRule]:
        """Rules about imports of a name, of what it is in, or of all below it."""
        table = self._keyed["import"]
        for prefix in _prefixes(name):
            yield from table.get(prefix, ())
        yield from _below(table, name)

    def _add(self, rule: SourceRule) -> None:
        for trigger in rule.on:
            for kind in trigger.types:
                self.nodes.setdefault(kind, []).append(rule)
            for key in trigger.keys:
                self._keyed[trigger.kind].setdefault(key, []).append(rule)


def _below(table: dict[str, list[SourceRule]], name: str) -> Iterator[SourceRule]:
    for prefix in _prefixes(name):
        yield from table.get(f"{prefix}.*", ())


def _prefixes(name: str) -> Iterator[str]:
    """`a.b.c`, `a.b`, `a`."""
    while name:
        yield name
        name = name.rpartition(".")[0]
