"""BLAS and LAPACK for operators that a release computes on the CPU, served by scipy.

scipy exports the Fortran routines with their C signatures. All arguments are pointers, so a call
only needs its addresses translated. Apple's own routines may round differently.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Iterable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from scanner.sim.machine.cpu import Cpu, Handler
from scanner.sim.machine.faults import Fault

__all__ = ["imports", "is_fortran"]

_REGISTERS = 8
_RETURNS: dict[str, type[ctypes.c_double] | type[ctypes.c_float]] = {
    "s": ctypes.c_float,
    "d": ctypes.c_double,
}
_CBLAS_DOT: dict[str, tuple[type[np.number[Any]], bool]] = {
    "_cblas_sdot": (np.float32, False),
    "_cblas_ddot": (np.float64, False),
    "_cblas_cdotu_sub": (np.complex64, False),
    "_cblas_cdotc_sub": (np.complex64, True),
    "_cblas_zdotu_sub": (np.complex128, False),
    "_cblas_zdotc_sub": (np.complex128, True),
}


def is_fortran(name: str) -> bool:
    """Whether an import is spelled as a Fortran routine: `_ssyevd_`."""
    return name.startswith("_") and not name.startswith("__") and name.endswith("_")


def imports(names: Iterable[str], used: Callable[[str], None]) -> dict[str, Handler]:
    """Handlers for those of the imported names that are Fortran routines or dot products.

    `used` is told each routine that is called.
    """
    found = {name: _fortran(name.strip("_"), used) for name in names if is_fortran(name)}
    return found | {name: _dot(*rest) for name, rest in _CBLAS_DOT.items()}


def _fortran(routine: str, used: Callable[[str], None]) -> Handler:
    def serve(cpu: Cpu) -> None:
        used(routine)
        native, count, kind = _routine(routine)
        result = native(*[_host(cpu, _argument(cpu, index)) for index in range(count)])
        if kind == "s":
            cpu.set_s(0, result)
        elif kind == "d":
            cpu.set_d(0, result)

    return serve


def _argument(cpu: Cpu, index: int) -> int:
    if index < _REGISTERS:
        return cpu.x(index)
    return cpu.memory.u64(cpu.sp + 8 * (index - _REGISTERS))


def _host(cpu: Cpu, address: int) -> int | None:
    return cpu.memory.host(address) if address else None


@cache
def _routine(name: str) -> tuple[Callable[..., Any], int, str]:
    """Native routine, number of arguments, and `s` or `d` when it returns a number."""
    for module in _modules():
        capsule = module.__pyx_capi__.get(name)
        if capsule is not None:
            return _callable(capsule)
    raise Fault(f"host function {name}_ of Accelerate is not imitated")


def _modules() -> list[ModuleType]:
    try:
        names = ("scipy.linalg.cython_lapack", "scipy.linalg.cython_blas")
        return [importlib.import_module(name) for name in names]
    except ImportError as error:
        raise Fault(f"operators that use LAPACK need scipy: {error}") from error


def _callable(capsule: object) -> tuple[Callable[..., Any], int, str]:
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = api.PyCapsule_GetName(capsule)
    address = api.PyCapsule_GetPointer(capsule, signature)
    result, _, rest = signature.decode().partition("(")
    count = rest.count(",") + 1
    kind = "" if result.strip() == "void" else result.strip()[-1]
    prototype = ctypes.CFUNCTYPE(_RETURNS.get(kind), *[ctypes.c_void_p] * count)
    return prototype(address), count, kind


def _dot(dtype: type[np.number[Any]], conjugate: bool) -> Handler:
    def serve(cpu: Cpu) -> None:
        count = cpu.x(0) & 0xFFFFFFFF
        left = _vector(cpu, cpu.x(1), count, cpu.x(2), dtype)
        right = _vector(cpu, cpu.x(3), count, cpu.x(4), dtype)
        result = np.dot(left.conj() if conjugate else left, right)
        if dtype is np.float32:
            cpu.set_s(0, float(result))
        elif dtype is np.float64:
            cpu.set_d(0, float(result))
        else:
            cpu.memory.write(cpu.x(5), np.asarray(result, dtype).tobytes())

    return serve


def _vector(cpu: Cpu, address: int, count: int, step: int, dtype: type[np.number[Any]]) -> Any:
    """`count` elements, `step` (a signed 32-bit number, positive here) elements apart."""
    step = step & 0xFFFFFFFF
    size = np.dtype(dtype).itemsize
    length = ((count - 1) * step + 1) * size if count else 0
    return np.frombuffer(cpu.memory.read(address, length), dtype)[:: step or 1]
