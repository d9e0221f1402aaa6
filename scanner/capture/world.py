"""The world a user's file is loaded and stepped in: an Apple GPU seems to be there.

Inside a world `torch.backends.mps.is_available()` is true, CUDA is absent, tensors say that they
live on `mps:0`, and whatever would be created on or moved to the GPU lands on the world's base
device instead: `meta` (no memory at all), a fake CPU tensor, or a small real CPU tensor.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any, Literal
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _foreach_utils
from torch.utils._device import _device_constructors

__all__ = ["Place", "Placement", "Rung", "world"]

Place = Literal["target", "host"]
Rung = Literal["meta", "fake", "real"]

_TARGET = torch.device("mps", 0)
_HOST = torch.device("cpu")
_ABSENT = frozenset({"cuda", "xpu", "hip", "mtia", "hpu"})


class Placement:
    """Which storages the user deliberately keeps on the host; everything else is on the target.

    Storages are told apart by their address, which a weak reference keeps from being reused.
    """

    def __init__(self, base: torch.device) -> None:
        self._base = base
        self._host: dict[int, Any] = {}
        self.default: Place = "target"
        """Where a tensor is created that names no device.

        A model's file builds for the target; an optimizer keeps its counters on the host.
        """
        self.creating: Place = "target"
        """Where the call in progress puts new storages."""

    def is_host(self, tensor: Tensor) -> bool:
        """Whether the tensor's storage is on the host."""
        with torch._C.DisableTorchFunction():
            if tensor.device.type != self._base.type:
                return True
            return bool(self._host) and _storage(tensor) in self._host

    def mark_host(self, tensor: Tensor) -> None:
        """Records that the tensor's storage is on the host."""
        key = _storage(tensor)
        if key:
            self._host[key] = torch.multiprocessing.reductions.StorageWeakRef(
                tensor.untyped_storage()
            )

    def clear(self) -> None:
        """Everything that exists now counts as being on the target."""
        self._host.clear()


def _storage(tensor: Tensor) -> int:
    if tensor.layout != torch.strided:
        return 0
    return int(tensor.untyped_storage()._cdata)


@contextlib.contextmanager
def world(rung: Rung) -> Iterator[Placement]:
    """Enters the world of one rung; yields where its tensors are placed."""
    # Registers torch's own functions by identity: must see them before they are patched.
    importlib.import_module("torch._dynamo")
    base = torch.device("meta" if rung == "meta" else "cpu")
    placement = Placement(base)
    with contextlib.ExitStack() as stack:
        for patch in _patches():
            stack.enter_context(patch)
        stack.enter_context(_cpu_kernels_as_on_mps())
        if rung == "fake":
            stack.enter_context(mock.patch.object(torch.utils, "swap_tensors", _overwrite))
            stack.enter_context(_fake_mode())
        stack.enter_context(_TargetDevice(base, placement))
        yield placement


def _fake_mode() -> contextlib.AbstractContextManager[Any]:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_non_fake_inputs=True)


def _overwrite(into: Tensor, source: Tensor) -> None:
    """Stands in for swapping, which a fake tensor's bookkeeping references forbid."""
    into.data = source.data


def _patches() -> Iterator[contextlib.AbstractContextManager[Any]]:
    """Answers of the modules that describe devices, as on an Apple-silicon Mac."""
    for module, answers in (
        (torch.backends.mps, {"is_available": True, "is_built": True}),
        (torch.cuda, {"is_available": False, "device_count": 0}),
        (torch.mps, _MPS_ANSWERS),
        (torch, {"set_default_device": None, "get_default_device": _TARGET}),
        (getattr(torch, "accelerator", None), _ACCELERATOR_ANSWERS),
    ):
        for name, value in answers.items():
            if hasattr(module, name):
                yield mock.patch.object(module, name, _returns(value))
    for module in (_foreach_utils, torch.nn.utils.clip_grad):
        yield mock.patch.object(module, "_device_has_foreach_support", _mps_has_foreach)


def _mps_has_foreach(_device: torch.device) -> bool:
    """Asked with the base device; whether `mps` has foreach kernels is what the Mac would find."""
    return "mps" in _foreach_utils._get_foreach_kernels_supported_devices()


_MPS_ANSWERS: dict[str, Any] = {
    "current_allocated_memory": 0,
    "device_count": 1,
    "driver_allocated_memory": 0,
    "empty_cache": None,
    "is_available": True,
    "manual_seed": None,
    "recommended_max_memory": 1 << 34,
    "seed": None,
    "set_per_process_memory_fraction": None,
    "synchronize": None,
}
_ACCELERATOR_ANSWERS: dict[str, Any] = {
    "current_accelerator": torch.device("mps"),
    "current_device_index": 0,
    "device_count": 1,
    "empty_cache": None,
    "is_available": True,
    "synchronize": None,
}


def _returns(value: Any) -> Callable[..., Any]:
    """A new function each time: torch keeps tables of functions by identity."""
    return lambda *_args, **_kwargs: value


@contextlib.contextmanager
def _cpu_kernels_as_on_mps() -> Iterator[None]:
    """Switches off the libraries and fused kernels that only a CPU build would choose."""
    mkldnn = torch._C._get_mkldnn_enabled()
    flash = torch.backends.cuda.flash_sdp_enabled()
    torch._C._set_mkldnn_enabled(False)
    torch.backends.cuda.enable_flash_sdp(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(mkldnn)
        torch.backends.cuda.enable_flash_sdp(flash)


class _TargetDevice(TorchFunctionMode):
    """Answers questions about devices as the Mac would, and redirects placements to the base."""

    def __init__(self, base: torch.device, placement: Placement) -> None:
        super().__init__()
        self._base = base
        self._placement = placement
        self._constructors = _device_constructors()
        self._special: dict[Any, Callable[..., Any]] = {
            _getter("device"): self._device_of,
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
            return self._create(func, args, kwargs, self._default())
        return func(*args, **kwargs)

    def _default(self) -> torch.device:
        return _TARGET if self._placement.default == "target" else _HOST

    def _device_of(self, tensor: Tensor) -> torch.device:
        return _HOST if self._placement.is_host(tensor) else _TARGET

    def _create(self, func: Any, args: Any, kwargs: Any, device: torch.device) -> Any:
        _refuse_absent(device)
        place: Place = "host" if device.type == "cpu" else "target"
        where = self._base if place == "target" or func not in self._constructors else _HOST
        with self._creating(place):
            result = func(*args, **{**kwargs, "device": where})
        if place == "host" and isinstance(result, Tensor):
            self._placement.mark_host(result)
        return result

    def _to(self, tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        device, dtype, copy, keep = _parse_to(args, kwargs)
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
            result = tensor.to(copy=True, **kwargs)
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


def _getter(name: str) -> Any:
    """What `__torch_function__` receives when the property is read."""
    return getattr(Tensor, name).__get__


def _parsed(device: Any) -> torch.device:
    if isinstance(device, int):
        return _TARGET
    return torch.device(device)


def _parse_to(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.device | None, torch.dtype | None, bool, dict[str, Any]]:
    """Device, dtype, copy and the remaining keywords of any of `Tensor.to`'s three signatures."""
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    flags = [arg for arg in args if isinstance(arg, bool)]
    for arg in args:
        if isinstance(arg, torch.dtype):
            dtype = arg
        elif isinstance(arg, Tensor):
            device, dtype = arg.device, arg.dtype
        elif isinstance(arg, str | int | torch.device) and not isinstance(arg, bool):
            device = arg
    if isinstance(kwargs.get("other"), Tensor):
        device, dtype = kwargs["other"].device, kwargs["other"].dtype
    copy = kwargs.get("copy", flags[1] if len(flags) > 1 else False)
    keep = {"memory_format": kwargs["memory_format"]} if kwargs.get("memory_format") else {}
    return None if device is None else _parsed(device), dtype, bool(copy), keep


def _refuse_absent(device: torch.device) -> None:
    if device.type in _ABSENT:
        _no_cuda()


def _no_cuda(*_args: Any, **_kwargs: Any) -> Any:
    raise AssertionError("Torch not compiled with CUDA enabled")
