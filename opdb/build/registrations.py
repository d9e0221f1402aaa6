"""What a library's registration blocks tell the dispatcher, read from their machine code.

`TORCH_LIBRARY_IMPL(aten, MPS, m)` compiles to a function `…TORCH_LIBRARY_IMPL_init_aten_MPS_<n>`;
each `m.impl("name", function)` in it ends in a call of `torch::Library::_impl` with the name in
`x1`, and the function's address has been written into the `CppFunction` that `x2` points to.
Likewise `m.def("schema")` in `TORCH_LIBRARY_init_aten`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from opdb.build.macho import Image
from opdb.build.sweep import Call, calls

__all__ = ["Registration", "blocks", "catch_all", "registrations", "schemas", "short_name"]

_BLOCK = re.compile(
    r"__ZN?\w*?L?\d+TORCH_LIBRARY_(?P<form>IMPL_|FRAGMENT_|)init_(?P<namespace>aten|_)"
    r"(?:_(?P<key>\w+?)_\d+|_\d+|)E?RN(?:S_|5torch)7LibraryE(?P<cold>\..*)?$"
)
_IMPL = "__ZNR5torch7Library5_implEPKc"
_WRAPPER = "make_boxed_from_unboxed_functor"
_CONSTRUCTOR = ("__ZN5torch11CppFunctionC1I", "__ZN5torch11CppFunctionC2I")
_FOR_FUNCTION = tuple(f"{each}N3c1026CompileTimeFunctionPointer" for each in _CONSTRUCTOR)
"""Constructors from a function that is a template argument: its address is written inside."""

_BOXED = (
    "__ZN3c1011BoxedKernel19make_boxed_functionI",
    "__ZN5torch11CppFunction21makeFromBoxedFunctionI",
)
"""A function that takes its arguments from a stack: for MPS, the CPU fallback or an error."""

_SCHEMA = re.compile(r"\w+(\.\w+)?\(.* -> ")
_COMPONENT = re.compile(r"N?(?:S[0-9A-Z]*_|St)?L?(\d+)")


class Registration(NamedTuple):
    """One `m.impl(name, function)`."""

    name: str
    """`kthvalue.values`, without namespace."""
    key: str
    """`MPS`, `SparseMPS`, `CompositeExplicitAutograd`, …"""
    function: str
    """Mangled name of what was registered."""
    entry: int
    """Address of its code; 0 for a boxed function known by name only."""


def blocks(image: Image) -> Iterator[tuple[str, str, int]]:
    """Registration blocks of the aten library as (form, dispatch key, address).

    The form is `IMPL`, `FRAGMENT` or empty; several translation units may use the same symbol.
    """
    for address, name in image.symbols.items():
        match = "TORCH_LIBRARY_" in name and _BLOCK.match(name)
        if match and match["namespace"] == "aten" and not match["cold"]:
            yield match["form"].rstrip("_"), match["key"] or "", address


def catch_all(image: Image) -> set[str]:
    """Short names of the boxed functions that serve every operator without an MPS kernel.

    Which one is installed depends on PYTORCH_ENABLE_MPS_FALLBACK when the library is loaded.
    """
    names = set()
    for address, symbol in image.symbols.items():
        if "TORCH_LIBRARY_IMPL_init___MPS_" in symbol and symbol.endswith("7LibraryE"):
            for call in calls(image, address):
                touched = [image.symbol(address) for address in (*call.stored, call.target)]
                names |= {short_name(each) for each in touched if each.startswith(_BOXED)}
    return names


def registrations(image: Image, keys: frozenset[str]) -> Iterator[Registration]:
    """Every `m.impl` of the blocks of some dispatch keys.

    Raises ValueError when a block is shaped in a way that this sweep does not know.
    """
    for form, key, address in blocks(image):
        if form == "IMPL" and key in keys:
            yield from _block(image, key, address)


def _block(image: Image, key: str, address: int) -> Iterator[Registration]:
    pointers: list[int] = []
    for call in calls(image, address):
        if not image.symbol(call.target).startswith(_IMPL):
            pointers += _candidates(image, call)
            continue
        name = image.cstring(call.registers.get("x1", 0)).removeprefix("aten::")
        function, entry = _registered(image, [*pointers, *call.stored])
        if not name or not function:
            raise ValueError(f"unknown code in the {key} block at {address:#x}: {name!r}")
        yield Registration(name, key, function, entry)
        pointers.clear()


def _candidates(image: Image, call: Call) -> list[int]:
    """Code addresses that a call has to do with: written before it, given to a constructor."""
    symbol = image.symbol(call.target)
    if "11CppFunction21makeFromBoxed" in symbol:
        return [call.target]
    if symbol.startswith(_FOR_FUNCTION):
        return [address for inside in calls(image, call.target) for address in inside.stored]
    given = [call.registers["x1"]] if symbol.startswith(_CONSTRUCTOR) else []
    return [*call.stored, *[address for address in given if address in image.symbols]]


def _registered(image: Image, pointers: list[int]) -> tuple[str, int]:
    """Of the pointers that went into one CppFunction: the function's name and entry."""
    direct = ("", 0)
    for pointer in pointers:
        symbol = image.symbols.get(pointer, "")
        if symbol.startswith(_BOXED):
            return symbol, 0
        if "wrap_kernel_functor_unboxed_" in symbol:
            return symbol, pointer
        if symbol and image.section(pointer) == "__text" and _WRAPPER not in symbol:
            direct = (symbol, pointer)
    return direct


def schemas(image: Image) -> list[str]:
    """Every schema that the aten library defines, namespace stripped."""
    found: dict[str, None] = {}
    for form, _, address in blocks(image):
        if form == "IMPL":
            continue
        for call in calls(image, address):
            for value in (*call.registers.values(), *call.stored):
                text = image.cstring(value).removeprefix("aten::")
                if _SCHEMA.match(text):
                    found[text] = None
    return list(found)


def short_name(mangled: str) -> str:
    """Last component of the innermost function named in a mangled symbol: `wrapper_MPS__erfinv`."""
    inner = mangled.rpartition("XadL_")[2]
    place, name = inner.find("Z") + 1, ""
    while match := _COMPONENT.match(inner, place):
        place = match.end() + int(match[1])
        name = inner[match.end() : place]
    return name
