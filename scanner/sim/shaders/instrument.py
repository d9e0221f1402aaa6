"""Rewrites a kernel's assembly so that its accesses are checked and its exchanges are numbered.

Every checked access, division and exchange is a *site*. A load through the pointer %p becomes

    %opscan.p7 = call ptr addrspace(1) @opscan.checked.1(ptr addrspace(1) %p, size, low, high, 7, 0)
    … = load float, ptr addrspace(1) %opscan.p7

where low and high bound the argument that %p was made of.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from . import ir
from .functions.division import division_definition
from .functions.memory import check_definition, checked
from .functions.table import classify
from .kernel import Kernel
from .provenance import Root, single, trace_pointers

__all__ = ["Instrumented", "Site", "instrument"]

_LOAD = re.compile(
    r"^(\s+%[\w.$-]+ = load (?:atomic )?(?:volatile )?)(.+?), "
    r"(ptr(?: addrspace\((\d)\))?) (%[\w.$-]+)(.*)$"
)
_STORE = re.compile(
    r"^(\s+store (?:atomic )?(?:volatile )?)(.+), (ptr(?: addrspace\((\d)\))?) (%[\w.$-]+)"
    r"((?:, (?:align \d+|!.*))*)$"
)
_DIVISION = re.compile(r"^\s+(%[\w.$-]+) = ([su](?:div|rem)) (?:exact )?(i\d+|<\d+ x i\d+>) (.*)$")
_TO_BFLOAT = re.compile(r"^(\s+%[\w.$-]+ = )fptrunc (?:[a-z]+ )*float (\S+) to bfloat(.*)$")
_POINTER_ARGUMENT = re.compile(r"(ptr(?: addrspace\((\d)\))?) (?:[\w() ]+ )?(%[\w.$-]+)$")
_LIMITS = "@opscan_bounds"


class Site(msgspec.Struct, frozen=True):
    """Something in a kernel that may be reported."""

    kind: str
    """`read`, `write`, `division` or `exchange`."""
    argument: int = -1
    """Buffer index; -1 where the memory is not an argument's."""
    name: str = ""
    """The source's name of the argument, or of the threadgroup array."""
    size: str = ""
    """Bytes of the access, where constant."""


class Instrumented(msgspec.Struct, frozen=True):
    """A module's assembly after the rewriting."""

    text: str
    sites: tuple[Site, ...]
    helpers: tuple[str, ...]
    """Definitions that the new calls need."""
    cooperative: bool
    atomic: bool


class _Array(NamedTuple):
    """A module's array in threadgroup (3) or constant (2) memory."""

    space: int
    kind: str


def _arrays(text: str) -> dict[str, _Array]:
    """The arrays of a module by name, with their LLVM types."""
    pattern = r"^(@[\w.$-]+) = .*?addrspace\((\d)\) (?:global|constant) (\[.*?\]+|<[^>]*>|[\w%.]+) "
    return {m[1]: _Array(int(m[2]), m[3]) for m in re.finditer(pattern, text, re.M)}


class _Rewriter:
    """Goes through the lines of one kernel function."""

    def __init__(
        self,
        kernel: Kernel,
        lines: list[str],
        names: list[str],
        arrays: dict[str, _Array],
        check: bool,
    ) -> None:
        self.sites: list[Site] = []
        self.helpers: set[str] = set()
        self.cooperative = self.atomic = False
        self._check = check
        self._buffers = {names[a.position]: i for i, a in enumerate(kernel.buffers)}
        self._arguments = kernel.buffers
        self._tracer = trace_pointers(lines, set(self._buffers))
        self._arrays = arrays

    def _site(self, kind: str, root: Root | None = None, size: str = "") -> int:
        argument, name = -1, root.name if root else ""
        if root and root.kind == "argument":
            found = self._arguments[self._buffers[root.name]]
            argument, name = found.index, found.name
        self.sites.append(Site(kind, argument, name, size if size.isdigit() else ""))
        return len(self.sites) - 1

    def _bounds(self, root: Root) -> tuple[str, str] | None:
        """The first and last address of what a pointer was made of, as LLVM values."""
        if root.kind == "argument":
            slot = self._buffers[root.name]
            return f"%opscan.low{slot}", f"%opscan.high{slot}"
        array = self._arrays.get(root.name)
        if root.kind == "global" and array and root.varying:
            start = f"ptr addrspace({array.space}) {root.name}"
            end = f"getelementptr ({array.kind}, {start}, i64 1)"
            return (
                f"ptrtoint ({start} to i64)",
                f"ptrtoint (ptr addrspace({array.space}) {end} to i64)",
            )
        return None

    def _guard(self, pointer: str, space: int, name: str, size: str, write: int) -> tuple[str, str]:
        """(lines before the access, name of the pointer to use)."""
        root = single(self._tracer.roots(name))
        if not self._check:
            return "", name
        bounds, array = self._bounds(root), self._array(root)
        if bounds is None and array is None and not (root.kind == "unknown" and space in (1, 2)):
            return "", name
        site = self._site("write" if write else "read", root, size)
        new = f"%opscan.p{site}"
        self.helpers.add(check_definition(space))
        before = ""
        if bounds is None:
            bounds = f"%opscan.l{site}", f"%opscan.h{site}"
            before = (
                self._around(root.name, array, site)
                if array
                else self._anywhere(pointer, name, size, site)
            )
        before += (
            f"  {new} = call {pointer} @{checked(space)}({pointer} {name}, i64 {size}, "
            f"i64 {bounds[0]}, i64 {bounds[1]}, i32 {site}, i32 {write})\n"
        )
        return before, new

    def _array(self, root: Root) -> str | None:
        """The type of a local array that is reached by an index that varies."""
        return self._tracer.allocated(root.name) if root.kind == "stack" and root.varying else None

    @staticmethod
    def _around(name: str, kind: str, site: int) -> str:
        """Bounds of a local array."""
        return (
            f"  %opscan.l{site} = ptrtoint ptr {name} to i64\n"
            f"  %opscan.h{site} = add i64 %opscan.l{site}, {ir.store_size(kind)}\n"
        )

    def _anywhere(self, pointer: str, name: str, size: str, site: int) -> str:
        """Bounds of a pointer read from memory: everything if some memory holds it, else none."""
        self.helpers.add("declare i32 @opscan_within(i64, i64) nounwind")
        return (
            f"  %opscan.a{site} = ptrtoint {pointer} {name} to i64\n"
            f"  %opscan.w{site} = call i32 @opscan_within(i64 %opscan.a{site}, i64 {size})\n"
            f"  %opscan.c{site} = icmp ne i32 %opscan.w{site}, 0\n"
            f"  %opscan.l{site} = add i64 0, 0\n"
            f"  %opscan.h{site} = select i1 %opscan.c{site}, i64 -1, i64 0\n"
        )

    def rewrite(self, line: str) -> str:
        """The line, and what must come before it."""
        if match := _LOAD.match(line):
            head, kind, pointer, space, name, tail = match.groups()
            before, new = self._guard(pointer, int(space or 0), name, ir.store_size(kind), 0)
            return f"{before}{head}{kind}, {pointer} {new}{tail}"
        if match := _STORE.match(line):
            head, value, pointer, space, name, tail = match.groups()
            size = ir.store_size(ir.argument_type(value))
            before, new = self._guard(pointer, int(space or 0), name, size, 1)
            return f"{before}{head}{value}, {pointer} {new}{tail}"
        if (match := _DIVISION.match(line)) and not _safe_divisor(ir.split(match[4])[1]):
            return self._divide(match)
        if match := _TO_BFLOAT.match(line):
            return f"{match[1]}call bfloat @opscan.to_bfloat(float {match[2]}){match[3]}"
        if " call " in line and (call := ir.call_in(line)):
            return self._call(line, call)
        return line

    def _divide(self, match: re.Match[str]) -> str:
        result, operation, kind, rest = match.groups()
        left, right = ir.split(rest)[:2]
        site = self._site("division")
        name = f"opscan.{operation}.{re.sub(r'[<> ]', '', kind)}"
        self.helpers.add(division_definition(operation, kind, name))
        return f"  {result} = call {kind} @{name}({kind} {left}, {kind} {right}, i32 {site})"

    def _call(self, line: str, call: ir.Call) -> str:
        family = classify(call.name)
        if family is None:
            return line
        if call.name.startswith("air.atomic.") and call.arguments:
            self.atomic = True
            return self._guard_argument(line, call.arguments[0], call.name)
        if family.kind != "cooperative":
            return self._memory_intrinsic(line, call)
        self.cooperative = True
        low, high, root = "0", "-1", None
        for argument in call.arguments:
            if match := _POINTER_ARGUMENT.search(argument):
                root = single(self._tracer.roots(match[3]))
                low, high = (self._check and self._bounds(root)) or ("0", "-1")
        site = self._site(
            "write" if "_store." in call.name else "read" if root else "exchange", root
        )
        given = ", ".join([*call.arguments, f"i32 {site}", f"i64 {low}", f"i64 {high}"])
        assign = f"{call.result} = " if call.result else ""
        return f"  {assign}call {call.kind} @{call.name}({given})"

    def _guard_argument(self, line: str, argument: str, name: str) -> str:
        match = _POINTER_ARGUMENT.search(argument)
        if match is None:
            return line
        size = "8" if name.endswith("64") else "4"
        write = 0 if ".load." in name else 1
        before, new = self._guard(match[1], int(match[2] or 0), match[3], size, write)
        changed = argument[: match.start(3)] + new
        return before + line.replace(argument, changed, 1)

    def _memory_intrinsic(self, line: str, call: ir.Call) -> str:
        if not re.match(r"llvm\.mem(cpy|move|set)\.", call.name):
            return line
        size = call.arguments[2].split()[-1]
        pointers = call.arguments[:1] if "memset" in call.name else call.arguments[:2]
        before = ""
        for i, argument in enumerate(pointers):
            if not (match := _POINTER_ARGUMENT.search(argument)):
                continue
            lines, new = self._guard(match[1], int(match[2] or 0), match[3], size, int(i == 0))
            before += lines
            line = line.replace(argument, argument[: match.start(3)] + new, 1)
        return before + line

    def prologue(self) -> str:
        """Loads of the bounds of every argument, for the entry block."""
        text = ""
        for slot in range(len(self._arguments)):
            for i, end in enumerate(("low", "high")):
                at = f"getelementptr (i64, ptr {_LIMITS}, i64 {2 * slot + i})"
                text += f"  %opscan.{end}{slot} = load i64, ptr {at}\n"
        return text


def _safe_divisor(text: str) -> bool:
    return re.fullmatch(r"-?\d+", text.strip()) is not None and text.strip() not in ("0", "-1")


def instrument(text: str, kernel: Kernel, *, check: bool) -> Instrumented:
    """Rewrites the kernel function of a module in which everything else was inlined.

    Without `check` only exchanges are numbered and divisions made safe.
    """
    start = re.search(rf'^define [^\n]*@"?{re.escape(kernel.symbol)}"?\(.*\{{$', text, re.M)
    if start is None:
        raise ValueError(f"the module does not define {kernel.symbol}")
    end = text.index("\n}", start.end())
    lines = text[start.end() : end].split("\n")
    names = [p.split()[-1] for p in ir.parameters(text, kernel.symbol)]
    rewriter = _Rewriter(kernel, lines, names, _arrays(text), check)
    body = [rewriter.rewrite(line) for line in lines]
    first = next(i for i, line in enumerate(body) if line.startswith("  "))
    if check:
        body.insert(first, rewriter.prologue().rstrip("\n"))
    rest = text[end:]
    return Instrumented(
        text[: start.end()] + "\n".join(body) + rest,
        tuple(rewriter.sites),
        tuple(sorted(rewriter.helpers)),
        rewriter.cooperative,
        rewriter.atomic,
    )
