"""The entry points that were compiled into a release: tensors, schemas, calls."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scanner.sim import values
from scanner.sim.machine.cpu import Cpu
from scanner.sim.values import DTYPES, Arena, Argument, HostTensor

__all__ = ["ArgumentError", "Description", "EntryPoints", "Raised"]

_RECORD = 32
_RESULTS = 4096
_TEXT = 1 << 16
_MAX_DIMENSIONS = 64
_MPS = 13
_SIGN = 1 << 63


class ArgumentError(Exception):
    """Arguments that a schema does not take."""


class Raised(Exception):  # noqa: N818
    """Emulated code raised: Python's name of the exception and its text.

    `kind` is empty for an exception that only C++ knows.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


@dataclass(frozen=True)
class Description:
    """A tensor's metadata. Sizes are in elements, `nbytes` is the storage's."""

    dtype: str
    device: str
    offset: int
    nbytes: int
    storage: int
    """What the storage's pointer says: an address on the CPU, a buffer object on the GPU."""
    conj: bool
    neg: bool
    strided: bool
    shape: tuple[int, ...]
    stride: tuple[int, ...]


class EntryPoints:
    """Calls compiled functions. Every method may raise `Fault`, and `Raised` where said."""

    def __init__(self, cpu: Cpu, symbols: Mapping[str, int], arena: Arena) -> None:
        self._cpu = cpu
        self._memory = cpu.memory
        self._symbols = symbols
        self._arena = arena

    def tensor(self, layout: HostTensor, nbytes: int, wrapped: bool = False) -> int:
        """A tensor with a storage of its own; raises `Raised`."""
        self._arena.reset()
        return self._made("tensor", [self._layout(layout, wrapped), nbytes])

    def alias(self, other: int, layout: HostTensor) -> int:
        """A tensor on the storage of another one; raises `Raised`."""
        self._arena.reset()
        return self._made("alias", [other, self._layout(layout, False)])

    def release(self, tensor: int) -> None:
        """Gives a reference back."""
        self._cpu.call(self._symbol("release"), [tensor])

    def describe(self, tensor: int) -> Description:
        """Metadata; raises `Raised`."""
        self._arena.reset()
        count = 9 + 2 * _MAX_DIMENSIONS
        out = self._arena.take(8 * count)
        self._run("describe", [tensor, out])
        words = struct.unpack(f"<{count}q", self._memory.read(out, 8 * count))
        rank = words[8]
        return Description(
            dtype=values.DTYPE_NAMES.get(words[0], str(words[0])),
            device="mps" if words[1] else "cpu",
            offset=words[2],
            nbytes=words[3],
            storage=words[4] % (1 << 64),
            conj=bool(words[5]),
            neg=bool(words[6]),
            strided=bool(words[7]),
            shape=words[9 : 9 + rank],
            stride=words[9 + rank : 9 + 2 * rank] if words[7] else (),
        )

    def schema(self, op: str) -> list[Argument]:
        """Arguments of an overload; raises `Raised` when there is none of this name."""
        self._arena.reset()
        text = self._arena.take(_TEXT)
        self._run("schema", self._names(op), text)
        return [_argument(line) for line in self._memory.text(text).splitlines()]

    def call(
        self, op: str, schema: Sequence[Argument], given: Mapping[str, Any], handle: Any
    ) -> tuple[Any, ...]:
        """Calls an overload; `handle` is its way with tensors (see `Handles`).

        Raises `Raised`, and ArgumentError for a value that cannot be passed.
        """
        self._arena.reset()
        raw = b"".join(self._encoded(argument, given, handle.pointer) for argument in schema)
        encoded = self._arena.put(raw)
        out = self._arena.take(_RECORD * _RESULTS)
        count = self._run("call", [*self._names(op), encoded, out, _RESULTS])
        raw = self._memory.read(out, _RECORD * count)
        return tuple(values.decode(raw, count, handle.make))

    def _encoded(self, argument: Argument, given: Mapping[str, Any], pointer: Any) -> bytes:
        if argument.name not in given:
            return values.default()
        try:
            return values.encode(given[argument.name], argument.type, self._arena, pointer)
        except (KeyError, TypeError, ValueError, MemoryError) as error:
            raise ArgumentError(f"argument {argument.name}: {error}") from error

    def _names(self, op: str) -> list[int]:
        name, _, overload = op.partition(".")
        return [self._arena.put(text.encode() + b"\0") for text in (name, overload)]

    def _layout(self, tensor: HostTensor, wrapped: bool) -> int:
        rank = len(tensor.shape)
        lists = self._arena.put(struct.pack(f"<{2 * rank}q", *tensor.shape, *tensor.stride))
        device = 0 if tensor.device == "cpu" else _MPS
        flags = (int(wrapped), int(tensor.conj), int(tensor.neg))
        words = (DTYPES[tensor.dtype], device, rank, tensor.offset, *flags)
        return self._arena.put(struct.pack("<9q", *words, lists, lists + 8 * rank))

    def _made(self, name: str, arguments: Sequence[int]) -> int:
        out = self._arena.take(_RECORD)
        self._run(name, [*arguments, out])
        return self._memory.u64(out + 24)

    def _symbol(self, name: str) -> int:
        return self._symbols[f"_opscan_{name}"]

    def _run(self, name: str, arguments: Sequence[int], text: int = 0) -> int:
        """Calls an entry point whose last argument is where it reports a failure."""
        kind = self._arena.put(b"\0" * 64)
        text = text or self._arena.take(_TEXT)
        self._memory.write(text, b"\0")
        report = self._arena.put(struct.pack("<QQQ", kind, text, _TEXT))
        status = self._cpu.call(self._symbol(name), [*arguments, report])
        if status & _SIGN:
            raise Raised(self._memory.text(kind), self._memory.text(text))
        return status


def _argument(line: str) -> Argument:
    name, kind, keyword_only, has_default = line.split("\t")
    return Argument(name, kind, keyword_only == "1", has_default == "1")
