"""The processor that kernels are compiled for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm

__all__ = ["Host", "this_host"]

_OMITTED_FEATURES = ("avx512bf16", "avxneconvert", "amx-bf16")
"""Their conversions to bfloat flush denormals whatever the mode."""


@dataclass(frozen=True)
class Host:
    """The processor that code is made for."""

    triple: str
    layout: str
    cpu: str
    features: str

    def machine(self, effort: int = 0) -> Any:
        """A fresh target machine; `effort` is LLVM's optimisation level."""
        return llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=effort, reloc="pic", codemodel="default"
        )


@lru_cache(maxsize=1)
def this_host() -> Host:
    """The processor and system of this process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    for name in _OMITTED_FEATURES:
        if name in features:
            features[name] = False
    triple, cpu = llvm.get_process_triple(), llvm.get_host_cpu_name()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu)
    return Host(triple, str(machine.target_data), cpu, features.flatten())
