"""Stops emulated code that runs for too long, by counting its basic blocks.

Counting is the same on every machine and under every load, unlike a time limit. unicorn's own
instruction limit makes code several times slower; a native callback on blocks costs about one
nanosecond each. It is compiled with llvmlite, as Python cannot be called that often.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
import unicorn
from unicorn.unicorn_py3 import unicorn as native

__all__ = ["Budget"]

_CALLBACK = """
define void @tick(ptr %engine, i64 %address, i32 %size, ptr %left) {{
  %before = load i64, ptr %left
  %after = sub i64 %before, 1
  store i64 %after, ptr %left
  %spent = icmp slt i64 %after, 0
  br i1 %spent, label %stop, label %done
stop:
  %function = inttoptr i64 {stop} to ptr
  %status = call i32 %function(ptr %engine)
  br label %done
done:
  ret void
}}
"""
_EVERYWHERE = (1, 0)
"""Begin after end: unicorn's spelling of all addresses."""


class Budget:
    """Basic blocks that one engine may still run; below zero it is stopped."""

    def __init__(self, engine: Any) -> None:
        self._left = ctypes.c_int64(0)
        self._code = _compiled()
        hook = ctypes.c_size_t()
        status = native.uclib.uc_hook_add(
            engine._uch,
            ctypes.byref(hook),
            ctypes.c_int(unicorn.UC_HOOK_BLOCK),
            ctypes.c_void_p(self._code.get_function_address("tick")),
            ctypes.c_void_p(ctypes.addressof(self._left)),
            *(ctypes.c_uint64(bound) for bound in _EVERYWHERE),
        )
        if status != unicorn.UC_ERR_OK:
            raise RuntimeError(f"unicorn does not count blocks: error {status}")

    def refill(self, blocks: int) -> None:
        """Allows so many blocks from now on."""
        self._left.value = blocks

    @property
    def spent(self) -> bool:
        """Whether the engine was stopped."""
        return self._left.value < 0


def _compiled() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    stop = ctypes.cast(native.uclib.uc_emu_stop, ctypes.c_void_p).value
    module = llvm.parse_assembly(_CALLBACK.format(stop=stop))
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine
