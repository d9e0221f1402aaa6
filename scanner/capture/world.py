"""The world a user's file is loaded and stepped in: an Apple GPU seems to be there.

Inside a world `torch.backends.mps.is_available()` is true, CUDA is absent, tensors say that they
live on `mps:0`, and whatever would be created on or moved to the GPU lands on the world's base
device instead: `meta` (no memory at all), a fake CPU tensor, or a small real CPU tensor.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Literal
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors
from torch.utils._python_dispatch import _disable_current_modes

from scanner.capture.fake_device import answering
from scanner.capture.imitation import TARGET, cpu_kernels_as_on_mps, overwrite, patches
from scanner.capture.placement import Place, Placement

__all__ = ["Rung", "world"]

Rung = Literal["meta", "fake", "real"]

_HOST = torch.device("cpu")
_TRUNCATED = "_no_grad_trunc_normal_"
_COPYING = frozenset({torch.as_tensor, torch.asarray, torch.tensor})
"""Constructors that copy a tensor they are given, which a meta tensor cannot be to the host."""
_WRAPPING = ("from_numpy", "frombuffer")
"""Functions that give tensors of the host's memory, and that no function mode sees."""
_WIDE = frozenset({torch.float64, torch.complex128})
_ABSENT = frozenset({"cuda", "xpu", "hip", "mtia", "hpu"})


@contextlib.contextmanager
def world(rung: Rung) -> Iterator[Placement]:
    """Enters the world of one rung; yields where its tensors are placed."""
    # Registers torch's own functions by identity: must see them before they are patched.
    importlib.import_module("torch._dynamo")
    base = torch.device("meta" if rung == "meta" else "cpu")
    placement = Placement(base)
    with contextlib.ExitStack() as stack:
        for patch in patches():
            stack.enter_context(patch)
        stack.enter_context(cpu_kernels_as_on_mps())
        if rung != "real":
            # It draws until every value is in range, which only values can tell.
            stack.enter_context(mock.patch.object(torch.nn.init, _TRUNCATED, _as_it_is))
        if rung == "fake":
            stack.enter_context(mock.patch.object(torch.utils, "swap_tensors", overwrite))
            stack.enter_context(_fake_mode())
        target = _TargetDevice(base, placement)
        for name in _WRAPPING:
            made = target.from_memory(getattr(torch, name))
            stack.enter_context(mock.patch.object(torch, name, made))
        stack.enter_context(mock.patch.object(torch, "set_default_device", target.set_default))
        if rung == "fake":
            stack.enter_context(answering(target.device_of))
        stack.enter_context(target)
        yield placement


def _fake_mode() -> contextlib.AbstractContextManager[Any]:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_non_fake_inputs=True)


def _as_it_is(tensor: Tensor, *_args: Any, **_kwargs: Any) -> Tensor:
    return tensor


class _TargetDevice(TorchFunctionMode):
    """Answers questions about devices as the Mac would, and redirects placements to the base."""

    def __init__(self, base: torch.device, placement: Placement) -> None:
        super().__init__()
        self._base = base
        self._placement = placement
        self._constructors = _device_constructors()
        self._special: dict[Any, Callable[..., Any]] = {
            _getter("device"): self.device_of,
            _getter("is_mps"): lambda t: not self._placement.is_host(t),
            _getter("is_cpu"): self._placement.is_host,
            _getter("is_meta"): lambda _t: False,
            _getter("is_cuda"): lambda _t: False,
            Tensor.get_device: lambda t: -1 if self._placement.is_host(t) else 0,
            Tensor.cpu: lambda t, **_k: self._move(t, "host"),
            Tensor.cuda: _no_cuda,
            Tensor.pin_memory: lambda t, *_a: t,
            Tensor.is_pinned: lambda _t, *_a: False,
            Tensor.to: self._to,
        }

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        special = self._special.get(func)
        if special is not None:
            return special(*args, **kwargs)
        device = kwargs.get("device")
        if device is not None:
            return self._create(func, args, kwargs, _parsed(device))
        if func in self._constructors:
            if _in_optimizer(sys._getframe(1)):
                return self._create(func, args, kwargs, _HOST, keep=True)
            return self._create(func, args, kwargs, self._default(func, args, kwargs))
        return func(*args, **kwargs)

    def _default(self, func: Any, args: Any, kwargs: Any) -> torch.device:
        """Where a tensor is taken to be that names no device.

        Eager torch makes it on the CPU. A step that was written for the CPU means the device of
        its neighbours, though, and is captured as if it said so; save for dtypes that only the CPU
        has, which must become narrower before they move.
        """
        placement = self._placement
        if placement.default == "host":
            return _HOST
        if placement.stepping and not placement.chosen and _is_wide(func, args, kwargs):
            return _HOST
        return TARGET

    def set_default(self, device: Any) -> None:
        """`torch.set_default_device`."""
        self._placement.chosen = device is not None and _parsed(device).type != "cpu"

    def from_memory(self, make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """A function that wraps the host's memory: what it gives in a step is on the host."""

        def made(*args: Any, **kwargs: Any) -> Tensor:
            if not self._placement.stepping:
                return make(*args, **kwargs)
            with self._creating("host"):
                result = make(*args, **kwargs)
            self._placement.mark_host(result)
            return result

        return made

    def device_of(self, tensor: Tensor) -> torch.device:
        """Where the user's code finds a tensor."""
        return _HOST if self._placement.is_host(tensor) else TARGET

    def _create(
        self, func: Any, args: Any, kwargs: Any, device: torch.device, *, keep: bool = False
    ) -> Any:
        _refuse_absent(device)
        place: Place = "host" if device.type == "cpu" else "target"
        copies = func in _COPYING and bool(args) and isinstance(args[0], Tensor)
        valued = place == "host" and (keep or self._placement.stepping) and not copies
        where = _HOST if valued else self._base
        with self._creating(place):
            result = func(*args, **{**kwargs, "device": where})
            if func is torch.tensor and where.type == "meta":
                # torch.tensor() ends in this op, except on meta.
                result = torch.ops.aten.lift_fresh.default(result)
        if place == "host" and isinstance(result, Tensor):
            self._placement.mark_host(result, keep=keep)
        return result

    def _to(self, tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        device, dtype, copy, keep = _parse_to(args, kwargs, self.device_of)
        place: Place | None = None
        if device is not None:
            _refuse_absent(device)
            place = "host" if device.type == "cpu" else "target"
        if place is None or place == self._place_of(tensor):
            return tensor.to(dtype=dtype or tensor.dtype, copy=copy, **keep)
        return self._move(tensor, place, dtype=dtype, **keep)

    def _move(self, tensor: Tensor, place: Place, **kwargs: Any) -> Tensor:
        if self._place_of(tensor) == place:
            return tensor
        kwargs["dtype"] = kwargs.get("dtype") or tensor.dtype
        with self._creating(place):
            if place == "target":
                kwargs["device"] = self._base
            result: Tensor = tensor.to(copy=True, **kwargs)
        if place == "host":
            self._placement.mark_host(result)
        return result

    def _place_of(self, tensor: Tensor) -> Place:
        return "host" if self._placement.is_host(tensor) else "target"

    @contextlib.contextmanager
    def _creating(self, place: Place) -> Iterator[None]:
        before, self._placement.creating = self._placement.creating, place
        try:
            yield
        finally:
            self._placement.creating = before


def _is_wide(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether a constructor makes float64 or complex128."""
    if kwargs.get("dtype") is not None:
        return kwargs["dtype"] in _WIDE
    if func in _COPYING and args:
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            data = args[0]
            return (data if isinstance(data, Tensor) else torch.as_tensor(data)).dtype in _WIDE
    return torch.get_default_dtype() in _WIDE


def _getter(name: str) -> Any:
    """What `__torch_function__` receives when the property is read."""
    return getattr(Tensor, name).__get__


def _in_optimizer(frame: FrameType) -> bool:
    """Whether torch's own optimizers ask: they keep their step counters on the host."""
    return f"{os.sep}torch{os.sep}optim{os.sep}" in frame.f_code.co_filename


def _parsed(device: Any) -> torch.device:
    if isinstance(device, int):
        return TARGET
    return torch.device(device)


def _parse_to(
    args: tuple[Any, ...], kwargs: dict[str, Any], device_of: Callable[[Tensor], torch.device]
) -> tuple[torch.device | None, torch.dtype | None, bool, dict[str, Any]]:
    """Device, dtype, copy and the remaining keywords of any of `Tensor.to`'s three signatures."""
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    flags = [arg for arg in args if isinstance(arg, bool)]
    for arg in args:
        if isinstance(arg, torch.dtype):
            dtype = arg
        elif isinstance(arg, Tensor):
            device, dtype = device_of(arg), arg.dtype
        elif isinstance(arg, str | int | torch.device) and not isinstance(arg, bool):
            device = arg
    if isinstance(kwargs.get("other"), Tensor):
        device, dtype = device_of(kwargs["other"]), kwargs["other"].dtype
    copy = kwargs.get("copy", flags[1] if len(flags) > 1 else False)
    keep = {"memory_format": kwargs["memory_format"]} if kwargs.get("memory_format") else {}
    return None if device is None else _parsed(device), dtype, bool(copy), keep


def _refuse_absent(device: torch.device) -> None:
    if device.type in _ABSENT:
        _no_cuda()


def _no_cuda(*_args: Any, **_kwargs: Any) -> Any:
    raise AssertionError("Torch not compiled with CUDA enabled")
