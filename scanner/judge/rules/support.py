"""OPS1xx: what the target does not support, or supports only on the CPU."""

from __future__ import annotations

from scanner.judge.rules.interface import Advice, OpCase, define
from scanner.judge.verdicts import FALLBACK_VARIABLE, wide_dtypes
from scanner.records import Value

__all__ = ["RULES"]


@define("OPS101", "op-unsupported", "error", since="0.1.0")
def op_unsupported(case: OpCase) -> Advice | None:
    """An op that MPS does not implement: the call raises NotImplementedError.

    PyTorch looks for a kernel under the MPS dispatch key and finds none, or finds a function that
    does nothing but raise. Training stops at this line, on the first step.

    opscan reads the registered kernels from the macOS wheel of the release that you target. A
    kernel may be registered and refuse the dtype; where releases were executed in the simulator
    with PyTorch's own samples, the finding quotes what they raise, and its evidence is *simulated*.

    ## What to do

    In this order:

    1. Upgrade, when a later release has a kernel. The finding names the first one.
    2. Run this part on the CPU and bring the result back. The backward pass follows:

           values = torch.linalg.eigvalsh(matrix.cpu()).to(matrix.device)

    3. Set `PYTORCH_ENABLE_MPS_FALLBACK=1` **before torch is imported**, when the finding says that
       it helps. Every call then waits for the GPU, copies its inputs out and its results back, and
       PyTorch warns about the first such op of a process only. opscan lists all of them as OPS103
       when the target says `fallback=1`.

    The variable does not help where the registered function raises by itself, nor for sparse
    tensors.
    """
    if case.verdict.status != "unsupported" or wide_dtypes(case.call):
        return None
    return Advice(
        message=f"{case.subject} is not supported on MPS by {_release(case)}: {_why(case)}",
        remedy=_remedy(case, variable=case.variable_serves),
    )


@define("OPS102", "cpu-fallback", "warning", since="0.1.0")
def cpu_fallback(case: OpCase) -> Advice | None:
    """An op that this release always runs on the CPU, whatever the environment says.

    The release registers PyTorch's CPU fallback as the op's MPS implementation. The call works,
    but it waits for the GPU to finish, copies every input to the CPU, computes there, and copies
    the results back. No environment variable is needed for that and none prevents it. PyTorch
    warns about the first falling-back op of a process and stays silent about all others.

    ## What to do

    - Upgrade, when a later release has a kernel. The finding names the first one.
    - Keep the op out of the inner loop: compute what does not change once, before training.
    - If several neighbours fall back, move that whole part of the model to the CPU yourself; data
      then cross over once instead of once for every op.
    """
    if case.verdict.status != "fallback" or case.variable_serves:
        return None
    return Advice(
        message=f"{case.subject} silently runs on the CPU in {_release(case)}: {_why(case)}",
        remedy=_remedy(case, variable=False),
    )


@define("OPS103", "fallback-by-variable", "warning", since="0.1.0")
def fallback_by_variable(case: OpCase) -> Advice | None:
    """An op without an MPS kernel that runs on the CPU because the fallback variable is set.

    The target says `fallback=1`, as on a machine where `PYTORCH_ENABLE_MPS_FALLBACK=1`. Without
    the variable the call raises NotImplementedError (OPS101). With it, every call waits for the
    GPU, copies its inputs to the CPU and its results back.

    The variable is read when torch is imported: setting it later in the script has no effect.

    ## What to do

    - Upgrade, when a later release has a kernel. The finding names the first one.
    - Otherwise treat it as a CPU op, and keep it out of the inner loop.
    """
    if case.verdict.status != "fallback" or not case.variable_serves:
        return None
    return Advice(
        message=f"{case.subject} runs on the CPU in {_release(case)}: {_why(case)}",
        remedy=_remedy(case, variable=False),
    )


@define("OPS104", "float64", "error", since="0.1.0")
def float64(case: OpCase) -> Advice | None:
    """A float64 or complex128 tensor on a device that has neither.

    Apple GPUs compute in float32 and narrower. PyTorch raises TypeError as soon as such a tensor
    would be made on, or moved to, `mps`:

        TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't
        support float64. Please use float32 instead.

    The CPU fallback variable does not help: the tensor cannot exist on the device.

    Only what brings the wide dtype in is reported: an op that makes such a tensor, or a parameter,
    buffer or input, at the op that reads it first. What they feed is listed as unsupported in the
    table without a finding of its own. Tensors that stay on the CPU are not reported, nor those
    that a step makes without naming a device, which are on the CPU unless
    `torch.set_default_device` says otherwise.

    ## Where float64 comes from

    - NumPy arrays, which are float64 unless said otherwise: `torch.from_numpy(a).float()`.
    - `.double()`, `dtype=torch.float64`, `torch.set_default_dtype(torch.float64)`.
    - Python floats in `torch.tensor([...], dtype=torch.double)`.

    ## What to do

    Make it float32. Where the algorithm needs the precision, compute that part on the CPU in
    float64 and convert the result: `solve(a.cpu().double()).float().to("mps")`.
    """
    dtypes = wide_dtypes(case.call)
    if case.verdict.status != "unsupported" or not dtypes or case.inherits_wide:
        return None
    if case.wide_sources:
        return _given_wide(case.wide_sources)
    return Advice(
        message=f"{case.subject} raises TypeError: {' and '.join(dtypes)} does not exist on MPS",
        remedy="Use float32 (complex64) here, or keep this part on the CPU and convert its result "
        'with .float() before .to("mps"). NumPy arrays are float64 by default.',
    )


@define("OPS105", "unknown-op", "note", since="0.1.0")
def unknown_op(case: OpCase) -> Advice | None:
    """An op that opscan has no facts about: neither proven nor disproven.

    Unknown is not a pass. The scan is incomplete and exits with 3, unless `--allow-incomplete`
    is given.

    Ops of extension libraries (`torchvision::nms`, your own `TORCH_LIBRARY`) are not in the
    database, which holds the ops of torch itself. An `aten` op can be unknown when the target
    release is newer or older than the one that captured the model, and has another set of ops.

    ## What to do

    - Look the op up in its library's documentation, or run it once on a Mac.
    - Capture with the torch release that you target.
    """
    if case.verdict.status != "unknown":
        return None
    return Advice(
        message=f"{case.subject} is not judged: {_why(case)}",
        remedy="Run it once on the device, or look for MPS in its library's documentation. "
        "--allow-incomplete accepts it as unjudged.",
    )


def _given_wide(sources: tuple[Value, ...]) -> Advice:
    first, *others = dict.fromkeys(sources)
    more = f" (and {len(others)} more that this line reads)" if others else ""
    return Advice(
        message=f"{first.role} {first.name} is {first.dtype}, which does not exist on MPS: moving "
        f"it there raises TypeError{more}",
        remedy="Make it float32 (complex64) where it is created, or with .float() before "
        '.to("mps"). NumPy arrays are float64 by default.',
    )


RULES = (op_unsupported, cpu_fallback, fallback_by_variable, float64, unknown_op)


def _release(case: OpCase) -> str:
    return f"{case.target.framework} {case.target.version}"


def _why(case: OpCase) -> str:
    """The reason, without what it says about the variable: the remedy says that."""
    return case.verdict.reason.split(f"; with {FALLBACK_VARIABLE}")[0]


def _remedy(case: OpCase, *, variable: bool) -> str:
    parts: list[str] = []
    if case.verdict.fixed_in:
        parts.append(f"Upgrade to torch {case.verdict.fixed_in} or later, which cures it.")
    if rewrite := case.rewrite:
        parts.append(f"Or write {rewrite.instead} for {rewrite.call}: it stays on the device.")
    if case.verdict.status == "unsupported":
        parts.append(
            'Run this line on the CPU: give it x.cpu() and move the result back with .to("mps"); '
            "the backward pass follows."
        )
    else:
        parts.append("Keep it out of the inner loop, or move its neighbours to the CPU with it.")
    if variable:
        parts.append(f"Or set {FALLBACK_VARIABLE}=1 before torch is imported.")
    return " ".join(parts)
