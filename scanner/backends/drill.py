"""A device that misbehaves on order, so that a gate can be seen to fail when it should.

It is the CPU, with the faults of its spec injected into the ops they name. `drill_spec` has the
language and the list of faults; `docs/probe.md` shows a drill of a whole scan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import torch
from torch.utils._pytree import tree_leaves

from scanner.backends.cpu import CpuDevice
from scanner.backends.drill_deaths import DEATHS
from scanner.backends.drill_results import RESULTS, unwritten
from scanner.backends.drill_spec import Fault, Operand, parse_drill
from scanner.backends.drill_words import SPOKEN, slowly
from scanner.backends.interface import DeviceFacts
from scanner.backends.overloads import runnable

__all__ = ["DrillDevice"]


class DrillDevice(CpuDevice):
    """The CPU with faults; `spec` is without its `drill:`. Raises `UsageError` for a bad one."""

    def __init__(self, spec: str) -> None:
        self._spec = spec
        self._faults = parse_drill(spec)
        self._seen: Counter[Fault] = Counter()
        self._by_op: dict[str, tuple[Fault, ...]] = {}

    @property
    def facts(self) -> DeviceFacts:
        """Never those of a real device, so that no store mistakes a drill for one."""
        return msgspec.structs.replace(
            super().facts, backend="drill", details={"faults": self._spec}
        )

    def submit(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the overload as the faults that concern it will have it."""

        if not self._named(op):
            return runnable(op, "cpu")(*args, **kwargs)

        def run() -> Any:
            return runnable(op, "cpu")(*args, **kwargs)

        for fault in self._striking(op, args, kwargs):
            run = _struck(fault, op, (args, kwargs), run)
        return run()

    def _named(self, op: str) -> tuple[Fault, ...]:
        """Faults that may strike an op; an op of which there are none must not be slowed down."""
        if op not in self._by_op:
            self._by_op[op] = tuple(fault for fault in self._faults if fault.names(op))
        return self._by_op[op]

    def _striking(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Fault]:
        operands = [_operand(leaf) for leaf in _tensors((args, kwargs))]
        faults = [fault for fault in self._named(op) if fault.concerns(op, operands)]
        self._seen.update(faults)
        return [fault for fault in faults if fault.nth in {None, self._seen[fault]}]


def _struck(fault: Fault, op: str, arguments: Any, run: Callable[[], Any]) -> Callable[[], Any]:
    """`run` with one fault more."""
    if fault.name == "slow":
        return lambda: slowly(run)
    if fault.name == "noinplace":
        return lambda: unwritten(op, _tensors(arguments), run)
    if fault.name in RESULTS:
        return lambda: RESULTS[fault.name](run())
    before = DEATHS.get(fault.name) or SPOKEN[fault.name]

    def first() -> Any:
        before(op)
        return run()

    return first


def _tensors(arguments: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]


def _operand(tensor: torch.Tensor) -> Operand:
    return Operand(
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        contiguous=tensor.is_contiguous(),
    )
