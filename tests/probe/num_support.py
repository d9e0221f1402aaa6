"""Configurations written by hand, devices that are wrong on purpose, and devices that are right in
another way than the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from scanner.backends.cpu import CpuDevice
from scanner.backends.overloads import overload
from scanner.probe.execute import Options, run_case
from scanner.probe.outcome import CaseResult
from scanner.records import OpCall, TensorSpec

QUICK = Options(gradients=False)
"""One run and one repetition, no gradients."""


def spec(name: str = "self", shape: tuple[int, ...] = (4, 4), dtype: str = "float32", **other: Any):
    """A tensor argument, contiguous unless strides are given."""
    stride = other.pop("stride", tuple(torch.empty(shape, device="meta").stride()))
    return TensorSpec(name=name, dtype=dtype, shape=shape, stride=stride, **other)


def call(op: str, *inputs: TensorSpec, phase: Any = "forward", **attributes: Any) -> OpCall:
    """One configuration; attributes by keyword."""
    return OpCall(op=op, phase=phase, inputs=inputs, attributes=attributes)


def mm(dtype: str = "float32", size: int = 32) -> OpCall:
    """A square product."""
    shape = (size, size)
    return call("aten::mm", spec("self", shape, dtype), spec("mat2", shape, dtype))


class Spoiled(CpuDevice):
    """Changes each tensor that an op returns."""

    def __init__(self, spoil: Callable[[Tensor], Tensor], *, gradients: bool = False) -> None:
        self._spoil = spoil
        self._gradients = gradients

    def call(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = super().call(op, args, kwargs)
        if torch.is_grad_enabled() != self._gradients:
            return result
        return tree_map_only(Tensor, self._spoil, result)


def in_place(change: Callable[[Tensor], Any]) -> Callable[[Tensor], Tensor]:
    """A spoiler that works on a dense copy and writes it back, as a wrong kernel would."""

    def spoil(tensor: Tensor) -> Tensor:
        if not tensor.numel():
            return tensor
        dense = tensor.data.clone(memory_format=torch.contiguous_format)
        changed = change(dense)
        tensor.data.copy_(dense if changed is None else changed)
        return tensor

    return spoil


def biased(values: Tensor) -> Tensor:
    """1 % too large."""
    return values * 1.01 if values.is_floating_point() or values.is_complex() else values


def noisy(values: Tensor) -> Tensor:
    """Up to three units in the last place off, either way."""
    if values.is_complex():
        return torch.view_as_complex(noisy(torch.view_as_real(values).contiguous()))
    if not values.is_floating_point():
        return values
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[values.element_size()]
    generator = torch.Generator().manual_seed(values.numel())
    steps = torch.randint(-3, 4, values.shape, generator=generator).to(bits)
    moved = (values.view(bits) + steps).view(values.dtype)
    tiny = values.abs() < 8 * torch.finfo(values.dtype).smallest_normal
    return torch.where(tiny | ~moved.isfinite(), values, moved)


def zeroed_tile(values: Tensor) -> None:
    """The last sixteen elements were never written."""
    values.view(-1)[-16:] = 0


def one_nan(values: Tensor) -> None:
    """NaN in the middle."""
    values.view(-1)[values.numel() // 2] = torch.nan


class Accurate(CpuDevice):
    """Computes in a wider dtype and rounds: another right implementation of every op."""

    def __init__(self, wider: dict[torch.dtype, torch.dtype]) -> None:
        self._wider = wider

    def call(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        plain = super().call(op, args, kwargs)
        func = overload(op)
        if func._schema.is_mutable or any(r.alias_info for r in func._schema.returns):
            return plain
        try:
            wide = func(*self._raised(args), **self._raised(kwargs))
        except (RuntimeError, NotImplementedError):
            return plain
        return self._rounded(plain, wide)

    def _raised(self, arguments: Any) -> Any:
        def raised(tensor: Tensor) -> Tensor:
            return tensor.to(self._wider.get(tensor.dtype, tensor.dtype))

        def dtype(value: torch.dtype) -> torch.dtype:
            return self._wider.get(value, value)

        tensors = tree_map_only(Tensor, raised, arguments)
        return tree_map_only(torch.dtype, dtype, tensors)

    def _rounded(self, plain: Any, wide: Any) -> Any:
        if isinstance(plain, Tensor) and isinstance(wide, Tensor):
            if plain.shape != wide.shape or not plain.layout == wide.layout == torch.strided:
                return plain
            return wide.to(plain.dtype) if wide.requires_grad else plain.copy_(wide)
        if isinstance(plain, list | tuple):
            return type(plain)(self._rounded(p, w) for p, w in zip(plain, wide, strict=True))
        return plain


def run_spoiled(
    configuration: OpCall, change: Callable[[Tensor], Any], options: Options = QUICK
) -> CaseResult:
    """What becomes of a configuration on a device whose every result is changed."""
    return run_case(configuration, Spoiled(in_place(change)), options)


def kinds(result: CaseResult) -> set[str]:
    """The detectors that fired."""
    return {detection.kind for detection in result.detections}
