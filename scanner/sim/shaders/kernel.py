"""What a kernel's own metadata says about calling it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import ir

__all__ = ["Argument", "Kernel", "read_kernel"]

_REFERENCE = re.compile(r"!(\d+)")
_ROLE = re.compile(r'i32 \d+, !"air\.(\w+)"')


@dataclass(frozen=True)
class Argument:
    """One parameter of the kernel function."""

    position: int
    role: str
    """`buffer`, `indirect_buffer`, `thread_position_in_grid`, …"""
    type_name: str
    """In the source's words: `float`, `uint3`, `IndexAB`."""
    name: str
    """The source's name of the parameter."""
    index: int = -1
    """Buffer index at which the host binds it; -1 for what is not a buffer."""
    space: int = 0
    """1 device, 2 constant, 3 threadgroup."""
    writable: bool = False
    type_size: int = 0
    """Bytes of one element."""

    @property
    def is_buffer(self) -> bool:
        """Whether the host binds memory to it."""
        return self.index >= 0


@dataclass(frozen=True)
class Kernel:
    """A kernel as its module describes it."""

    name: str
    symbol: str
    """Name of the function in the module."""
    arguments: tuple[Argument, ...]
    flush_denormals: bool
    fast_math: bool
    max_threads: int
    """Most threads that a threadgroup may have; 0 where the source sets no limit."""

    @property
    def buffers(self) -> tuple[Argument, ...]:
        """The arguments that the host binds, in order."""
        return tuple(a for a in self.arguments if a.is_buffer)


def _field(node: str, key: str) -> str:
    match = re.search(rf'!"air\.{key}", (?:i32 (\d+)|!"([^"]*)")', node)
    return (match[1] or match[2]) if match else ""


def _argument(position: int, node: str) -> Argument:
    role = _ROLE.search(node)
    if role is None:
        raise ValueError(f"an argument without a role: {node}")
    is_buffer = role[1] in ("buffer", "indirect_buffer")
    return Argument(
        position=position,
        role=role[1],
        type_name=_field(node, "arg_type_name"),
        name=_field(node, "arg_name"),
        index=int(_field(node, "location_index") or 0) if is_buffer else -1,
        space=int(_field(node, "address_space") or 0),
        writable='!"air.read_write"' in node or '!"air.write"' in node,
        type_size=int(_field(node, "arg_type_size") or 0),
    )


def read_kernel(text: str, name: str) -> Kernel:
    """Reads `!air.kernel` and `!air.compile_options` of a module's assembly.

    The node of a kernel is (function, outputs, arguments, attributes …). Raises ValueError for a
    module without one.
    """
    nodes = ir.metadata(text)
    head = re.search(r"^!air\.kernel = !\{!(\d+)", text, re.M)
    if head is None:
        raise ValueError("the module has no kernel")
    node = nodes[head[1]]
    symbol = re.search(r'@"?([^",\s]+)"?', node)
    references = _REFERENCE.findall(node)
    if symbol is None or len(references) < 2:
        raise ValueError("the module's kernel has no arguments list")
    listed = [nodes[r] for r in _REFERENCE.findall(nodes[references[1]])]
    limit = re.search(r'!"air\.max_work_group_size", i32 (\d+)', " ".join(
        nodes[r] for r in references[2:]
    ) + node)  # fmt: skip
    return Kernel(
        name=name,
        symbol=symbol[1],
        arguments=tuple(_argument(i, n) for i, n in enumerate(listed)),
        flush_denormals='"air.compile.denorms_disable"' in text,
        fast_math='"air.compile.fast_math_disable"' not in text,
        max_threads=int(limit[1]) if limit else 0,
    )
