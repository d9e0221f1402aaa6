"""Which calls a compiled function makes, always or for some arguments, and whether it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from opdb.build.macho import Image
from opdb.build.sweep import disassemble

__all__ = ["Flow"]

_NORETURN = (
    "___cxa_throw",
    "___cxa_rethrow",
    "___cxa_bad_cast",
    "___clang_call_terminate",
    "___stack_chk_fail",
    "__Unwind_Resume",
    "__ZSt9terminatev",
    "__ZN3c106detail14torchCheckFail",
    "__ZN3c106detail23torchInternalAssertFail",
    "_abort",
    "_objc_exception_throw",
)
"""Functions of other libraries that never return, by the start of their mangled names."""

_DEPTH = 4
"""How many calls deep a function is followed to see that it never returns."""

_BRANCHES = ("b.", "bc.", "cbz", "cbnz", "tbz", "tbnz")
_FINAL = ("b", "br", "ret", "retab", "brk", "udf")
"""After these the following instruction is not executed."""


class _Block(NamedTuple):
    """Straight-line code: the calls in it and where it goes next."""

    calls: tuple[int, ...]
    successors: tuple[int, ...]
    leaves: bool
    """Returns, or goes on in code that was not followed."""


class Flow:
    """Control flow of a library's functions; answers are remembered."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._returns: dict[int, tuple[bool, int]] = {}
        self._blocks: dict[int, dict[int, _Block]] = {}

    def returns(self, start: int, depth: int = _DEPTH) -> bool:
        """Whether some path through the function comes back; False means that it only raises."""
        if self._image.symbol(start).startswith(_NORETURN):
            return False
        known, looked = self._returns.get(start, (True, 0))
        if not known or looked >= depth or self._image.section(start) != "__text":
            return known
        self._returns[start] = True, depth  # a cycle is not followed twice
        answer = self._reaches_end(start, depth)
        self._returns[start] = answer, depth
        return answer

    def _reaches_end(self, start: int, depth: int) -> bool:
        blocks, seen, waiting = self.blocks(start), {start}, [start]
        while waiting:
            block = blocks[waiting.pop()]
            if not all(self.returns(call, depth - 1) for call in block.calls):
                continue
            if block.leaves:
                return True
            fresh = [each for each in block.successors if each not in seen]
            seen.update(fresh)
            waiting += fresh
        return False

    def certain(self, start: int) -> list[int]:
        """Targets of the direct calls that every returning path makes, in address order."""
        blocks = self.blocks(start)
        alive = self._alive(start, blocks)
        into: dict[int, frozenset[int] | None] = dict.fromkeys(alive)
        into[start] = frozenset()
        waiting = [start]
        while waiting:
            place = waiting.pop()
            done = (into[place] or frozenset()) | frozenset(blocks[place].calls)
            for successor in blocks[place].successors:
                if successor not in alive:
                    continue
                known = into[successor]
                merged = done if known is None else known & done
                if merged != known:
                    into[successor] = merged
                    waiting.append(successor)
        ends = [
            (into[place] or frozenset()) | frozenset(blocks[place].calls)
            for place in alive
            if blocks[place].leaves
        ]
        return sorted(frozenset.intersection(*ends)) if ends else []

    def possible(self, start: int) -> list[int]:
        """Targets of the direct calls that some returning path makes, in address order."""
        blocks = self.blocks(start)
        return sorted({call for at in self._alive(start, blocks) for call in blocks[at].calls})

    def _alive(self, start: int, blocks: dict[int, _Block]) -> set[int]:
        """Blocks on some path from the start to a return."""
        good = {
            place
            for place, block in blocks.items()
            if all(self.returns(call) for call in block.calls)
        }
        ahead = _closure({start} & good, lambda at: [n for n in blocks[at].successors if n in good])
        before: dict[int, list[int]] = {}
        for place in ahead:
            for successor in blocks[place].successors:
                before.setdefault(successor, []).append(place)
        ends = {place for place in ahead if blocks[place].leaves}
        return _closure(ends, lambda at: before.get(at, []))

    def blocks(self, start: int) -> dict[int, _Block]:
        """Basic blocks of the function at `start` by address."""
        if start not in self._blocks:
            self._blocks[start] = dict(_split(self._image, start))
        return self._blocks[start]


def _closure(first: Iterable[int], neighbours: Callable[[int], Iterable[int]]) -> set[int]:
    """Everything that can be reached from some places."""
    seen, waiting = set(first), list(first)
    while waiting:
        fresh = [each for each in neighbours(waiting.pop()) if each not in seen]
        seen.update(fresh)
        waiting += fresh
    return seen


def _split(image: Image, start: int) -> Iterator[tuple[int, _Block]]:
    """Basic blocks of one function, each with its address."""
    end = image.end(start)
    code = list(disassemble(image, start, end))
    leaders = {_target(mnemonic, operands) for *_, mnemonic, operands in code if _ends(mnemonic)}
    first, calls = start, []
    for address, size, mnemonic, operands in code:
        following, ends = address + size, _ends(mnemonic)
        if mnemonic == "bl":
            calls.append(_target(mnemonic, operands))
        if not ends and following not in leaders and following != end:
            continue
        target = _target(mnemonic, operands) if ends else -1
        after = [following] if following < end and mnemonic not in _FINAL else []
        leaves = mnemonic in ("ret", "retab", "br")
        if ends and target >= 0:
            if start <= target < end:
                after.append(target)
            else:
                leaves = True
                calls += [target] if mnemonic == "b" else []
        yield first, _Block(tuple(calls), tuple(after), leaves)
        first, calls = following, []


def _ends(mnemonic: str) -> bool:
    """Whether a basic block ends with this instruction."""
    return mnemonic in _FINAL or mnemonic.startswith(_BRANCHES)


def _target(mnemonic: str, operands: str) -> int:
    """Address that a direct branch or call goes to, -1 for indirect ones."""
    direct = mnemonic in ("b", "bl") or mnemonic.startswith(_BRANCHES)
    return int(operands.rpartition("#")[2], 0) if direct else -1
