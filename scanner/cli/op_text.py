"""Facts about ops as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from opdb import query
from opdb.closure import reached
from opdb.facts import OpFact
from opdb.simulated import dtypes
from scanner.cli.executed_text import executed
from scanner.errors import UsageError

__all__ = ["answer_text", "history", "json_lines", "require_known", "row", "unknown_op"]


def answer_text(name: str, versions: Iterable[str], format_name: str) -> str:
    """What `opscan db op` prints; raises `UsageError` for an unknown op or release."""
    releases = dict.fromkeys(query.resolve_release(version) for version in versions)
    facts = [query.lookup(name, release) for release in releases or (query.newest(),)]
    if not any(fact.exists for fact in facts):
        require_known(name)
    if format_name == "json":
        return _json(facts)
    return "".join(details(fact) for fact in facts)


def require_known(name: str) -> None:
    """Raises `UsageError` for a name that no release has.

    An op that only other releases have is an answer; one that none has is a mistake.
    """
    if not any(query.lookup(name, release).exists for release in query.releases()):
        raise unknown_op(name)


def _json(facts: Sequence[OpFact]) -> str:
    """One object, or an array when several releases were asked for."""
    import msgspec

    full = [
        {**msgspec.to_builtins(fact), "simulated": dtypes(fact.op, fact.version)} for fact in facts
    ]
    encoded = msgspec.json.encode(full[0] if len(full) == 1 else full)
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def json_lines(facts: Iterable[OpFact]) -> str:
    """One object a line."""
    import msgspec

    return "".join(f"{msgspec.json.encode(fact).decode()}\n" for fact in facts)


def details(fact: OpFact) -> str:
    """Everything that matters about one op in one release, a few lines."""
    lines = [f"{fact.op}  torch {fact.version}: {fact.status}", f"  {fact.reason}"]
    if fact.fixed_in:
        lines.append(f"  fixed in torch {fact.fixed_in}")
    if fact.native_since:
        lines.append(f"  MPS kernel since torch {fact.native_since}")
    if fact.fallback_versions:
        lines.append(f"  runs on the CPU in torch {', '.join(fact.fallback_versions)}")
    lines += _leads(fact)
    if fact.evidence:
        lines.append(f"  evidence: {fact.evidence}, {fact.source}")
    lines += executed(dtypes(fact.op, fact.version))
    lines += [f"  see {link}" for link in fact.links]
    return "\n".join(lines) + "\n"


def _leads(fact: OpFact) -> Iterator[str]:
    """What a composite op calls that the release lacks or sends to the CPU."""

    def lookup(op: str) -> OpFact:
        return query.lookup(op, fact.version)

    for call, when in fact.leads.items():
        found = reached(call, lookup, {}, lookup)
        if found.status in {"unsupported", "fallback"}:
            often = "always" if when == found.how == "always" else "for some arguments"
            yield f"  calls {often} {' -> '.join(found.chain)}: {found.status}"


def history(op: str) -> str:
    """The op in the newest release, and its status in every range of releases."""
    facts = [query.lookup(op, release) for release in query.releases()]
    newest = details(facts[-1])
    lines = []
    for status, run in groupby(facts, key=lambda fact: fact.status):
        span = [fact.version for fact in run]
        releases = span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}"
        lines.append(f"  torch {releases:20} {status}")
    return newest + "\nhistory\n" + "\n".join(lines) + "\n"


def row(fact: OpFact) -> str:
    """One line of `opscan db list`."""
    return f"{fact.status:12} {fact.op}\n"


def unknown_op(name: str) -> UsageError:
    """The error for an op that no release has, with what may be meant."""
    near = query.suggest(name)
    return UsageError(
        f"no torch release known to opscan has an op {name}",
        remedy=f"Did you mean {', '.join(near)}?"
        if near
        else "`opscan db list` names all of them; rules are named OPS101 and so on.",
    )
