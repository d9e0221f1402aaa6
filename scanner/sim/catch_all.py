"""`PYTORCH_ENABLE_MPS_FALLBACK=1` after the fact.

A static initialiser reads the variable and registers one of two functions for operators without an
MPS kernel. In a snapshot it has registered the one that raises; both have the same signature, so
that a jump at the beginning of that one makes it the other.
"""

from __future__ import annotations

import struct

from scanner.sim.machine.memory import Memory
from scanner.sim.prepare.errors import PrepareError
from scanner.sim.prepare.prepared import Prepared

__all__ = ["FALLBACK", "enable_fallback"]

FALLBACK = {"PYTORCH_ENABLE_MPS_FALLBACK": "1"}
_JUMP = (0x58000050, 0xD61F0200)
"""ldr x16, 8 bytes ahead; br x16. An address follows."""


def enable_fallback(memory: Memory, prepared: Prepared) -> None:
    """Makes operators without an MPS kernel run on the CPU. Raises PrepareError."""
    symbols = prepared.manifest.symbols
    raising, falling = symbols.get("mps_error_fallback"), symbols.get("mps_fallback")
    if raising is None or falling is None:
        release = prepared.release
        raise PrepareError(
            f"the prepared torch {release} does not say where its CPU fallback is",
            remedy=f"Run: opscan sim remove torch=={release}; opscan sim prepare torch=={release}",
        )
    memory.write(raising, struct.pack("<IIQ", *_JUMP, falling))
