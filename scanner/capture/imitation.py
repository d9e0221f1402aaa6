"""Answers of torch's own modules, as on an Apple-silicon Mac."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils import _foreach_utils

__all__ = ["TARGET", "cpu_kernels_as_on_mps", "overwrite", "patches"]

TARGET = torch.device("mps", 0)


def overwrite(into: Tensor, source: Tensor) -> None:
    """Stands in for swapping, which a fake tensor's bookkeeping references forbid."""
    into.data = source.data


def patches() -> Iterator[contextlib.AbstractContextManager[Any]]:
    """Answers of the modules that describe devices, as on an Apple-silicon Mac."""
    for module, answers in (
        (torch.backends.mps, {"is_available": True, "is_built": True}),
        (torch.cuda, {"is_available": False, "device_count": 0}),
        (torch.mps, _MPS_ANSWERS),
        (torch, {"get_default_device": TARGET}),
        (getattr(torch, "accelerator", None), _ACCELERATOR_ANSWERS),
    ):
        for name, value in answers.items():
            if hasattr(module, name):
                yield mock.patch.object(module, name, _returns(value))
    for module in (_foreach_utils, torch.nn.utils.clip_grad):
        yield mock.patch.object(module, "_device_has_foreach_support", _mps_has_foreach)
    yield mock.patch.object(
        torch.nn.utils.clip_grad, "_group_tensors_by_device_and_dtype", _grouped_on_target
    )


def _grouped_on_target(*args: Any, **kwargs: Any) -> dict[tuple[torch.device, Any], Any]:
    """The groups that torch makes by the base device, under the device they stand for."""
    groups = _foreach_utils._group_tensors_by_device_and_dtype(*args, **kwargs)
    return {(TARGET, dtype): tensors for (_, dtype), tensors in groups.items()}


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
def cpu_kernels_as_on_mps() -> Iterator[None]:
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
