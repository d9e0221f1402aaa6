"""Sets of releases, written as ranges over the ordered list of known releases.

`1.12.1..2.0.1,2.3.0,2.9.0..` is three ranges: both ends included, a single release, and one that is
still open at the newest known release. The text of a set is unique: ranges are maximal, ascending,
and open when they can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

__all__ = ["contains", "decode", "encode", "positions"]


def positions(releases: Sequence[str]) -> dict[str, int]:
    """Release → its place in the ordered list."""
    return {release: place for place, release in enumerate(releases)}


def encode(members: Iterable[str], releases: Sequence[str]) -> str:
    """Text of a non-empty set of known releases. KeyError for an unknown one."""
    where = positions(releases)
    ranges: list[list[int]] = []
    for place in sorted({where[member] for member in members}):
        if ranges and ranges[-1][1] == place - 1:
            ranges[-1][1] = place
        else:
            ranges.append([place, place])
    return ",".join(_text(low, high, releases) for low, high in ranges)


def _text(low: int, high: int, releases: Sequence[str]) -> str:
    if high == len(releases) - 1:
        return f"{releases[low]}.."
    return releases[low] if low == high else f"{releases[low]}..{releases[high]}"


def decode(text: str, where: Mapping[str, int]) -> list[tuple[int, int]]:
    """Ranges of places, both ends included. ValueError when malformed or of an unknown release."""
    ranges: list[tuple[int, int]] = []
    for part in text.split(","):
        first, dots, last = part.partition("..")
        try:
            low = where[first]
            high = where[last] if last else (len(where) - 1 if dots else low)
        except KeyError as unknown:
            raise ValueError(f"unknown release {unknown} in {text!r}") from None
        if high < low or (ranges and low <= ranges[-1][1] + 1):
            raise ValueError(f"ranges of {text!r} are not ascending and apart")
        ranges.append((low, high))
    return ranges


def contains(text: str, place: int, where: Mapping[str, int]) -> bool:
    """Whether the set holds the release at a place."""
    return any(low <= place <= high for low, high in decode(text, where))
