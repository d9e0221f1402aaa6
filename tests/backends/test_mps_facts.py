"""MPS' own words, as users have posted them, read on a machine that has no MPS."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from scanner.backends import mps_facts
from scanner.backends.mps_facts import OutOfMemory

GIB = 2**30

# actions/runner-images #9918, a hosted runner.
RUNNER = (
    "MPS backend out of memory (MPS allocated: 0 bytes, other allocations: 0 bytes, max allowed: "
    "7.93 GB). Tried to allocate 256 bytes on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO="
    "0.0 to disable upper limit for memory allocations (may cause system failure)."
)
# actions/runner-images #11899: figures are left out.
RUNNER_15 = (
    "MPS backend out of memory (MPS allocated: 1024.00 MB). "
    "Tried to allocate 256 bytes on shared pool."
)
# Comfy-Org/ComfyUI #8984: a real Mac, newer spelling of the units.
MAC = (
    "MPS backend out of memory (MPS allocated: 15.72 GiB, other allocations: 2.41 MiB, max "
    "allowed: 18.13 GiB). Tried to allocate 5.81 GiB on private pool."
)
WARNING = (
    "The operator 'aten::linalg_svd' is not currently supported on the MPS backend and will fall "
    "back to run on the CPU. This may have performance implications. (Triggered internally at "
    "/pytorch/aten/src/ATen/mps/MPSFallback.mm:13.)"
)
# As printed when no Python frame is there to warn, from an autograd thread.
PRINTED = (
    "[W MPSFallback.mm:13] Warning: The operator 'torchvision::nms' is not currently supported on "
    "the MPS backend and will fall back to run on the CPU. This may have performance "
    "implications. (function operator())\n"
)


@pytest.mark.parametrize(
    ("message", "figures"),
    [
        (RUNNER, OutOfMemory(tried=256, allocated=0, other=0, allowed=round(7.93 * GIB))),
        (RUNNER_15, OutOfMemory(tried=256, allocated=GIB)),
        (
            MAC,
            OutOfMemory(
                tried=round(5.81 * GIB),
                allocated=round(15.72 * GIB),
                other=round(2.41 * 2**20),
                allowed=round(18.13 * GIB),
            ),
        ),
        ("CUDA out of memory. Tried to allocate 2.00 GiB.", None),
    ],
)
def test_out_of_memory_figures(message: str, figures: OutOfMemory | None) -> None:
    assert mps_facts.out_of_memory(message) == figures


def test_only_a_tiny_failed_allocation_means_a_virtual_gpu() -> None:
    assert mps_facts.tiny_allocation_failed(RUNNER)
    assert mps_facts.tiny_allocation_failed(RUNNER_15)
    assert not mps_facts.tiny_allocation_failed(MAC)
    assert not mps_facts.tiny_allocation_failed("no MPS at all")


@pytest.mark.parametrize(
    "text",
    [
        RUNNER,
        "CUDA out of memory. Tried to allocate 2.00 GiB.",
        "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 4398046511104 bytes. Error code 12 (Cannot allocate memory)",
        "std::bad_alloc",
        "Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
    ],
)
def test_memory_errors_are_recognised(text: str) -> None:
    assert mps_facts.is_out_of_memory(text)


def test_other_errors_are_not_memory_errors() -> None:
    assert not mps_facts.is_out_of_memory("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)")


def test_fallback_ops_are_named_once_each_in_order() -> None:
    text = f"{WARNING}\n{PRINTED}{WARNING}"
    assert mps_facts.fallback_ops(text) == ("aten::linalg_svd", "torchvision::nms")
    assert mps_facts.fallback_ops("nothing fell back") == ()


@pytest.mark.parametrize("name", ["Apple Paravirtual device", "Apple M1 (Virtual)"])
def test_virtual_names(name: str) -> None:
    assert mps_facts.is_virtual(name)
    assert name in mps_facts.virtual_device(name).reason


def test_a_real_name_is_not_virtual() -> None:
    assert not mps_facts.is_virtual("Apple M3 Pro")


def test_fallback_variables() -> None:
    assert mps_facts.fallback_variables(None) == {}
    assert mps_facts.fallback_variables(True) == {"PYTORCH_ENABLE_MPS_FALLBACK": "1"}
    assert mps_facts.fallback_variables(False) == {"PYTORCH_ENABLE_MPS_FALLBACK": "0"}


def test_metal_name_before_and_after_torch_could_tell_it() -> None:
    newer = SimpleNamespace(get_name=lambda: "Apple M3 Pro GPU")
    assert mps_facts.metal_name(newer, "Apple M3 Pro") == "Apple M3 Pro GPU"
    assert mps_facts.metal_name(SimpleNamespace(), "Apple M3 Pro") == "Apple M3 Pro"


def test_allocator_figures_as_far_as_the_release_has_them() -> None:
    mps = SimpleNamespace(current_allocated_memory=lambda: 512, driver_allocated_memory=lambda: 768)
    assert mps_facts.allocator_figures(mps) == {
        "current_allocated_memory": 512,
        "driver_allocated_memory": 768,
    }
