"""Functions of `torch.cuda`, and what a Mac has instead.

What each of them does without CUDA was seen by calling it in a build without CUDA, torch 2.13.0.
"""

from __future__ import annotations

import ast

from scanner.source.here import Here
from scanner.source.interface import Correction, Edit, Hit, source_rule
from scanner.source.rules.guards import never_on_mps
from scanner.source.rules.shared import word_in_file
from scanner.source.triggers import calls, names

__all__ = ["RULES"]

_RAISING = {
    "synchronize": "torch.accelerator.synchronize() (torch 2.6) or torch.mps.synchronize()",
    "mem_get_info": "torch.mps.recommended_max_memory() and torch.mps.driver_allocated_memory()",
    "get_device_name": "platform.processor(), or nothing",
    "get_device_properties": "torch.mps.recommended_max_memory() for its memory",
    "get_device_capability": "nothing: MPS has no compute capability",
    "current_device": "torch.accelerator.current_device_index() (torch 2.8)",
    "set_device": "nothing: a Mac has one GPU",
    "device": "nothing: a Mac has one GPU",
    "reset_peak_memory_stats": "nothing: MPS keeps no peak",
    "reset_max_memory_allocated": "nothing: MPS keeps no peak",
    "memory_summary": "torch.mps.current_allocated_memory()",
    "memory_snapshot": "torch.mps.profiler.profile()",
    "initial_seed": "torch.initial_seed()",
    "get_rng_state": "torch.mps.get_rng_state()",
    "ipc_collect": "nothing: MPS tensors are not shared between processes",
    "set_per_process_memory_fraction": "torch.mps.set_per_process_memory_fraction()",
    "can_device_access_peer": "nothing: a Mac has one GPU",
    "current_blas_handle": "nothing",
    "init": "nothing",
    "utilization": "nothing in torch",
    "temperature": "nothing in torch",
    "memory_usage": "torch.mps.driver_allocated_memory()",
}
"""Function of `torch.cuda` → what to write for a Mac."""


@source_rule(
    "OPS610",
    "cuda-call-raises",
    "error",
    since="0.1.0",
    on=[calls(*(f"torch.cuda.{name}" for name in _RAISING))],
    tokens=["cuda"],
    fixes="unsafe",
)
def cuda_call_raises(node: ast.AST, here: Here) -> Hit | None:
    """A function of `torch.cuda` that raises where PyTorch has no CUDA, as on every Mac.

        AssertionError: Torch not compiled with CUDA enabled

    `synchronize`, `mem_get_info`, `get_device_name`, `set_device` and others do so; the finding
    names what a Mac has instead.

    ## What to do

    Write what the finding says, or ask first: `if device.type == "cuda":`. opscan is silent where
    the file has asked, or catches the error.
    """
    if never_on_mps(here) or not isinstance(node, ast.Call):
        return None
    function = here.name.rpartition(".")[2]
    if function == "device" and node.args and "device" in here.module.source(node.args[0]):
        return None  # around kernels of CUDA's
    plain = function == "synchronize" and not node.args and not node.keywords
    return here.hit(
        node,
        f"{here.name}() raises on a Mac: PyTorch has no CUDA there",
        f"Ask for CUDA first; on a Mac write {_RAISING[function]}.",
        correction=Correction(
            "Wait for whichever accelerator there is",
            safe=False,
            edits=(Edit(here.module.span(node.func), "torch.accelerator.synchronize"),),
            imports=("import torch",),
        )
        if plain
        else None,
    )


_SILENT = {
    "empty_cache": ("frees nothing", "torch.mps.empty_cache()"),
    "memory_allocated": ("is 0", "torch.mps.current_allocated_memory()"),
    "max_memory_allocated": ("is 0", "torch.mps.driver_allocated_memory() at intervals"),
    "memory_reserved": ("is 0", "torch.mps.driver_allocated_memory()"),
    "max_memory_reserved": ("is 0", "torch.mps.driver_allocated_memory() at intervals"),
    "memory_cached": ("is 0", "torch.mps.driver_allocated_memory()"),
    "max_memory_cached": ("is 0", "torch.mps.driver_allocated_memory() at intervals"),
}


@source_rule(
    "OPS611",
    "cuda-memory-call-does-nothing",
    "note",
    since="0.1.0",
    on=[calls(*(f"torch.cuda.{name}" for name in _SILENT))],
    tokens=["cuda"],
)
def cuda_memory_call(node: ast.AST, here: Here) -> Hit | None:
    """A call about CUDA's memory that does nothing, or answers 0, on a Mac.

    `torch.cuda.empty_cache()` returns without a word where there is no CUDA, and
    `torch.cuda.memory_allocated()` is 0: the MPS cache is not emptied, a log shows no memory.

    ## What to do

    For MPS: `torch.mps.empty_cache()`, `torch.mps.current_allocated_memory()` (torch's tensors) and
    `torch.mps.driver_allocated_memory()` (all that Metal holds), from torch 2.0. From 2.9,
    `torch.accelerator` has `empty_cache`, `memory_allocated` and `max_memory_allocated`.
    opscan says nothing in files that mention `torch.mps` or `torch.accelerator`.
    """
    if never_on_mps(here) or word_in_file(here, "torch.mps", "torch.accelerator", "backends.mps"):
        return None
    does, instead = _SILENT[here.name.rpartition(".")[2]]
    return here.hit(node, f"{here.name}() {does} on a Mac", f"For MPS call {instead}.")


@source_rule(
    "OPS612",
    "cuda-seed-alone",
    "warning",
    since="0.1.0",
    on=[calls("torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.cuda.seed")],
    tokens=["cuda"],
)
def cuda_seed_alone(node: ast.AST, here: Here) -> Hit | None:
    """CUDA is seeded and nothing else, so that runs on a Mac differ.

    `torch.cuda.manual_seed` waits for CUDA, which never comes. `torch.manual_seed` seeds the CPU,
    CUDA and MPS. opscan says nothing where the file calls that too.

    ## What to do

    Call `torch.manual_seed(seed)`.
    """
    seeds = ("torch.manual_seed", "torch.random", "seed_everything", "set_seed", "mps.manual_seed")
    if word_in_file(here, *seeds, "import manual_seed", "th.manual_seed") or never_on_mps(here):
        return None
    return here.hit(node, f"{here.name}() does not seed MPS", "Call torch.manual_seed(seed).")


_STREAMS = ("Stream", "Event", "current_stream", "default_stream", "ExternalStream")


@source_rule(
    "OPS613",
    "cuda-stream",
    "error",
    since="0.1.0",
    on=[calls(*(f"torch.cuda.{name}" for name in _STREAMS))],
    tokens=["cuda"],
)
def cuda_stream(node: ast.AST, here: Here) -> Hit | None:
    """Streams and events of CUDA cannot be made on a Mac.

        RuntimeError: Tried to instantiate dummy base class Event

    ## What to do

    - To time something: `torch.mps.Event(enable_timing=True)`, from torch 2.1.
    - To wait for the GPU: `torch.mps.synchronize()`, or `torch.accelerator.synchronize()` (2.6).
    - Streams of one's own: `torch.mps.Stream`, from torch 2.15. Before, MPS has one stream and the
      code does without.
    """
    if never_on_mps(here):
        return None
    instead = "torch.mps.Event (torch 2.1)" if here.name.endswith("Event") else "one MPS stream"
    return here.hit(
        node,
        f"{here.name}() raises on a Mac: PyTorch has no CUDA there",
        f"Ask for CUDA first; on a Mac use {instead}.",
    )


@source_rule(
    "OPS614",
    "cuda-graph",
    "error",
    since="0.1.0",
    on=[calls("torch.cuda.CUDAGraph", "torch.cuda.graph", "torch.cuda.make_graphed_callables")],
    tokens=["cuda"],
)
def cuda_graph(node: ast.AST, here: Here) -> Hit | None:
    """CUDA graphs do not exist on a Mac.

        RuntimeError: Tried to instantiate dummy base class CUDAGraph

    ## What to do

    Capture only where `device.type == "cuda"`, and run the step as it is elsewhere. MPS has nothing
    like it in releases up to 2.15.
    """
    if never_on_mps(here):
        return None
    return here.hit(
        node,
        f"{here.name}() raises on a Mac, which has no CUDA graphs",
        "Capture only where device.type is cuda.",
    )


@source_rule(
    "OPS615",
    "cuda-profiling",
    "warning",
    since="0.1.0",
    on=[calls("torch.cuda.nvtx.*", "torch.cuda.profiler.*", "torch.cuda.cudart")],
    tokens=["nvtx", "cuda.profiler", "cudart"],
)
def cuda_profiling(node: ast.AST, here: Here) -> Hit | None:
    """NVTX ranges and CUDA's profiler raise on a Mac.

        RuntimeError: NVTX functions not installed. Are you sure you have a CUDA build?

    ## What to do

    Mark ranges with `torch.profiler.record_function`, which works everywhere. For Instruments,
    `torch.mps.profiler.profile()` emits signposts, from torch 2.1.
    """
    if never_on_mps(here):
        return None
    return here.hit(
        node,
        f"{here.name}() raises on a Mac",
        "Use torch.profiler.record_function, or torch.mps.profiler on a Mac.",
    )


_TYPES = ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")


@source_rule(
    "OPS616",
    "cuda-tensor-type",
    "error",
    since="0.1.0",
    on=[names(*(f"torch.cuda.{name}Tensor" for name in _TYPES))],
    tokens=["Tensor"],
)
def cuda_tensor_type(node: ast.AST, here: Here) -> Hit | None:
    """Legacy tensor types of CUDA raise where there is no CUDA.

        TypeError: type torch.cuda.FloatTensor not available.

    MPS has no such types.

    ## What to do

    Name the dtype and the device: `torch.tensor(data, dtype=torch.float32, device=device)`.
    """
    if never_on_mps(here) or _is_compared(here) or not _is_used(here):
        return None
    return here.hit(
        node,
        f"{here.name} does not exist on a Mac",
        "Give dtype= and device= instead.",
    )


def _is_compared(here: Here) -> bool:
    """`isinstance(x, torch.cuda.FloatTensor)` and tables by type only ask."""
    return any(
        isinstance(each, ast.Compare | ast.Dict)
        or (isinstance(each, ast.Call) and here.resolve(each.func) == "builtins.isinstance")
        for each in here.path
    )


def _is_used(here: Here) -> bool:
    """Called, or given to a call such as `x.type(...)`; an annotation does no harm."""
    annotated = any(isinstance(each, ast.arg | ast.AnnAssign) for each in here.path)
    return not annotated and any(isinstance(each, ast.Call) for each in here.path)


RULES = (
    cuda_call_raises,
    cuda_memory_call,
    cuda_seed_alone,
    cuda_stream,
    cuda_graph,
    cuda_profiling,
    cuda_tensor_type,
)
