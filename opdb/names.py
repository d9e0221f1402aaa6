"""Operators by the names that users call them: `torch.linalg.eigh`, `F.softmax`, `Tensor.item`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import cache

from opdb import store, tables
from opdb.facts import plain, qualified

__all__ = ["candidates", "overloads", "resolve", "suggest"]

_PREFIXES = (
    ("torch.nn.functional.", ""),
    ("torch.nn.", ""),
    ("torch.linalg.", "linalg_"),
    ("torch.fft.", "fft_"),
    ("torch.special.", "special_"),
    ("torch.Tensor.", ""),
    ("torch.", ""),
    ("nn.functional.", ""),
    ("linalg.", "linalg_"),
    ("fft.", "fft_"),
    ("special.", "special_"),
    ("Tensor.", ""),
    ("F.", ""),
    ("nn.", ""),
)
"""Where a public name is found, and how its operators' names begin."""
_FOREIGN = ("tf", "tensorflow", "keras", "jax", "jnp", "np", "numpy")
"""Packages whose functions are others, even where they have the same name."""
_PREFERRED = ("", ".Tensor", ".self", ".int", ".dim", ".Scalar")
"""Overloads in the order in which one stands for all."""


def candidates(text: str) -> tuple[str, ...]:
    """Base names that a public name may mean, most likely first."""
    name = text.strip()
    found = [plain(name)]
    for prefix, start in _PREFIXES:
        if name.startswith(prefix):
            rest = name.removeprefix(prefix)
            found += [f"{start}{rest}", rest]
    return tuple(dict.fromkeys(each for each in found if each))


def resolve(text: str) -> str | None:
    """The overload that a name means, qualified; None when no release has one.

    A base name stands for its plainest overload, a public name for the operator of that name.
    """
    if text.strip().partition(".")[0] in _FOREIGN:
        return None
    known = _by_base()
    for name in candidates(text):
        base = name.partition(".")[0]
        if name in known.get(base, ()):
            return qualified(name)
        if name in known:
            return qualified(min(known[name], key=_rank))
    return None


def overloads(op: str) -> tuple[str, ...]:
    """All overloads of an operator's base name, qualified, sorted."""
    return tuple(map(qualified, _by_base().get(plain(op).partition(".")[0], ())))


def suggest(text: str, limit: int = 5) -> tuple[str, ...]:
    """Known overloads that a misspelled or incomplete name may mean, qualified, best first."""
    found = dict.fromkeys(_near(text, limit))
    return tuple(map(qualified, found))[:limit]


def _near(text: str, limit: int) -> Iterator[str]:
    known = _by_base()
    names = [*candidates(text), text.strip().rpartition(".")[2].lower()]
    for name in names:
        yield from known.get(name.partition(".")[0], ())
    for name in names:
        yield from difflib.get_close_matches(name, _all(), limit, cutoff=0.75)
    for name in names:
        for base in difflib.get_close_matches(name, known, limit, cutoff=0.75):
            yield min(known[base], key=_rank)


def _rank(name: str) -> tuple[int, str]:
    overload = name[len(name.partition(".")[0]) :]
    place = _PREFERRED.index(overload) if overload in _PREFERRED else len(_PREFERRED)
    return place, name


@cache
def _all() -> tuple[str, ...]:
    """Overloads of all releases together, sorted."""
    return tuple(sorted({span.op for span in store.default.all(tables.OPS)}))


@cache
def _by_base() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for name in _all():
        found.setdefault(name.partition(".")[0], []).append(name)
    return {base: tuple(names) for base, names in found.items()}
