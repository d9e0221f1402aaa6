"""Opening devices, and what a GPU's check concludes from what a driver does."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from scanner.backends import torch_device
from scanner.backends.cpu import CpuDevice
from scanner.backends.open import check_device_spec, open_device
from scanner.backends.overloads import overload
from scanner.backends.system import cpu_model
from scanner.backends.torch_device import TorchDevice
from scanner.errors import UsageError

from .test_mps_facts import MAC, RUNNER


@pytest.mark.parametrize(
    "spec", ["cpu", "mps", "cuda", "cuda:1", "metal-sim:2.15.0", "drill:nan=*"]
)
def test_known_devices(spec: str) -> None:
    check_device_spec(spec)


@pytest.mark.parametrize("spec", ["gpu", "cuda:x", "", "CPU"])
def test_unknown_devices_list_the_known(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_device_spec(spec)
    assert "drill:SPEC" in caught.value.remedy


def test_a_bad_drill_is_refused_before_a_worker_starts() -> None:
    with pytest.raises(UsageError, match="no fault 'abbort'"):
        check_device_spec("drill:abbort=aten::mm")


def test_checking_a_spec_imports_no_torch() -> None:
    code = (
        "import sys; from scanner.backends.open import check_device_spec;"
        "check_device_spec('drill:nan=*'); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_cpu_computes_and_copies() -> None:
    device = open_device("cpu")
    assert isinstance(device, CpuDevice)
    host = torch.ones(2, 2)
    there = device.upload(host)
    device.call("aten::mul_.Scalar", (there, 3), {})
    assert host.eq(1).all()
    result = device.download(there)
    there.zero_()
    assert result.eq(3).all()
    assert device.check() is None
    assert device.timer()(lambda: None) >= 0


def test_unknown_overloads_say_nothing_about_the_device() -> None:
    assert overload("aten::linalg_svd.U") is torch.ops.aten.linalg_svd.U
    for op in ("aten::no_such_op", "aten::mm.no_such_overload", "mm", "nowhere::op"):
        with pytest.raises(LookupError, match="has no"):
            overload(op)


def test_processor_name_from_cpuinfo() -> None:
    assert cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n") == "Some CPU @ 2 GHz"
    assert cpu_model("processor\t: 0\n") == ""


def gpu(kind: str = "mps", *, available: bool = True, **module: Any) -> TorchDevice:
    device = TorchDevice(kind)
    device._module = SimpleNamespace(is_available=lambda: available, **module)
    return device


def test_a_missing_gpu_is_unusable() -> None:
    unusable = gpu(available=False).check()
    assert unusable is not None
    assert "finds no mps device" in unusable.reason


@pytest.mark.parametrize("chip", ["Apple Paravirtual device", "Apple M1 (Virtual)"])
def test_a_virtual_gpu_is_unusable_before_it_is_used(
    monkeypatch: pytest.MonkeyPatch, chip: str
) -> None:
    monkeypatch.setattr(torch_device, "chip_name", lambda: chip)
    monkeypatch.setattr(torch.backends.mps, "get_name", lambda: "Apple M1")
    unusable = gpu().check()
    assert unusable is not None
    assert "virtual machine" in unusable.reason
    assert "self-hosted" in unusable.remedy


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (RUNNER, "virtual machine"),
        (MAC, "cannot multiply two 8×8 matrices: MPS backend out of memory"),
        ("Internal error\nstack", "cannot multiply two 8×8 matrices: Internal error"),
    ],
)
def test_a_gpu_that_fails_the_proof(
    monkeypatch: pytest.MonkeyPatch, message: str, reason: str
) -> None:
    def fail() -> None:
        raise RuntimeError(message)

    monkeypatch.setattr(torch_device, "chip_name", lambda: "Apple M3")
    monkeypatch.setattr(torch.backends.mps, "get_name", lambda: "Apple M3")
    device = gpu()
    monkeypatch.setattr(device, "_prove", fail)
    unusable = device.check()
    assert unusable is not None
    assert reason in unusable.reason


def cpu_in_disguise(name: str = "Apple M3") -> TorchDevice:
    """The generic implementation over the CPU, which has the same API where it matters."""
    device = gpu("cuda", get_device_name=lambda _: name, synchronize=lambda _device: None)
    device._device = torch.device("cpu")
    return device


def test_the_proof_passes_on_a_working_device() -> None:
    assert cpu_in_disguise().check() is None


def test_a_gpu_that_multiplies_wrongly_is_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    device = cpu_in_disguise()
    monkeypatch.setattr(device, "download", lambda tensor: tensor + 1)
    unusable = device.check()
    assert unusable is not None
    assert "multiplies an 8×8 permutation wrongly" in unusable.reason


def test_without_events_the_synchronised_clock_is_used() -> None:
    device = cpu_in_disguise()
    assert device.timer() == device._by_clock
    assert device.timer()(lambda: None) >= 0


def test_events_that_tell_no_time_are_not_used() -> None:
    class Stopped:
        def __init__(self, enable_timing: bool) -> None: ...
        def record(self) -> None: ...
        def synchronize(self) -> None: ...
        def elapsed_time(self, _: object) -> float:
            return 0.0

    device = cpu_in_disguise()
    device._module.Event = Stopped
    assert device.timer() == device._by_clock


@pytest.mark.device
def test_cuda_is_used_in_full_precision() -> None:
    device = open_device("cuda")
    assert device.check() is None
    wide = torch.rand(256, 256)
    product = device.download(device.call("aten::mm", (*device.upload_all([wide, wide]),), {}))
    # TF32 keeps 10 bits: its error here would be about 1e-3 of the result.
    torch.testing.assert_close(product, wide @ wide, rtol=1e-5, atol=1e-4)
    image, kernel = torch.rand(2, 64, 16, 16), torch.rand(64, 64, 3, 3)
    args = (*device.upload_all([image, kernel]), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    truth = overload("aten::convolution")(image, kernel, *args[2:])
    there = device.download(device.call("aten::convolution", args, {}))
    torch.testing.assert_close(there, truth, rtol=1e-5, atol=1e-3)


@pytest.mark.device
def test_cuda_uploads_keep_layouts_and_aliases() -> None:
    device = open_device("cuda")
    base = torch.arange(24.0)
    views = [base[3:], base.view(4, 6).t(), base[:1].expand(5, 1)]
    there = device.upload_all(views)
    for view, copy in zip(views, there, strict=True):
        assert (copy.stride(), copy.storage_offset()) == (view.stride(), view.storage_offset())
        assert torch.equal(device.download(copy), view)
    there[0].zero_()
    assert device.download(there[1])[1].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert device.timer()(lambda: there[1] + 1) > 0
    assert device.memory()["memory_allocated"] > 0
    device.release()
