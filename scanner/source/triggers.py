"""What rules listen to."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Trigger", "calls", "imports", "methods", "names", "nodes", "tokens_of"]


class Trigger(NamedTuple):
    """One kind of event in the walk, and the keys for which a rule hears of it."""

    kind: str
    keys: tuple[str, ...] = ()
    types: tuple[type[ast.AST], ...] = ()


def calls(*qualified: str) -> Trigger:
    """Calls of what an import makes known: `torch.device`, or `torch.cuda.*` for all below.

    The node is the `ast.Call`, `here.name` the qualified name. Built-ins are `builtins.print`.
    """
    return Trigger("call", qualified)


def methods(*attributes: str) -> Trigger:
    """Calls `x.cuda(...)` where `x` is a value: anything but an imported name.

    The node is the `ast.Call`, whose `func` is an `ast.Attribute`; `here.name` the method.
    """
    return Trigger("method", attributes)


def names(*qualified: str) -> Trigger:
    """Any mention of an imported name: `torch.float64`, or `torch.cuda.amp.*` for all below.

    The node is the whole `ast.Attribute` or `ast.Name`, `here.name` the qualified name. A name
    that is called is mentioned too. For `*` the longest chain is heard, once.
    """
    return Trigger("name", qualified)


def imports(*modules: str) -> Trigger:
    """Imports of a module, of anything in it, or of a module below it.

    The node is the `ast.alias`; `here.name` what is imported: `torch.cuda.amp.autocast`.
    """
    return Trigger("import", modules)


def nodes(*types: type[ast.AST]) -> Trigger:
    """Every node of these types; `here.name` is empty. `ast.Module` is heard before all others."""
    return Trigger("node", (), types)


def tokens_of(triggers: Iterable[Trigger]) -> frozenset[str]:
    """Words of which a file must hold one; empty when a trigger hears nodes of any file."""
    words: set[str] = set()
    for trigger in triggers:
        if trigger.types:
            return frozenset()
        words.update(key.removesuffix(".*").rpartition(".")[2] for key in trigger.keys)
    return frozenset(words)
