"""Runs elementwise kernels of a release over a dtype's whole range, against torch on the CPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import torch

from scanner.sim.shaders.executor import Executor
from scanner.sim.shaders.kernel import read_kernel
from scanner.sim.shaders.library import Library
from scanner.sim.shaders.results import Ran
from scanner.sim.trace import Binding, Launch

DTYPES = {
    "float": torch.float32,
    "half": torch.float16,
    "bfloat": torch.bfloat16,
    "int": torch.int32,
    "long": torch.int64,
    "short": torch.int16,
    "char": torch.int8,
    "uchar": torch.uint8,
    "bool": torch.bool,
}
Function = Callable[..., torch.Tensor]
UNARY: dict[str, Function] = {
    "acos": torch.acos, "asin": torch.asin, "atan": torch.atan, "cos": torch.cos,
    "cosh": torch.cosh, "entr": torch.special.entr, "erf": torch.erf, "exp": torch.exp,
    "exp2": torch.exp2, "log": torch.log, "log10": torch.log10, "log1p": torch.log1p,
    "log2": torch.log2, "neg": torch.neg, "round": torch.round, "rsqrt": torch.rsqrt,
    "sigmoid": torch.sigmoid, "sin": torch.sin, "sinh": torch.sinh, "sqrt": torch.sqrt,
    "spherical_bessel_j0": torch.special.spherical_bessel_j0, "tan": torch.tan,
    "tanh": torch.tanh, "bitwise_not": torch.bitwise_not,
}  # fmt: skip
BINARY: dict[str, Function] = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div_true": torch.div,
    "copysign": torch.copysign, "fmax": torch.fmax, "fmin": torch.fmin, "fmod": torch.fmod,
    "xlog1py": torch.special.xlog1py,
}  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """How a kernel's results compare with those of double arithmetic on the CPU."""

    inputs: tuple[torch.Tensor, ...]
    got: torch.Tensor
    reference: torch.Tensor
    nan_differs: int
    inf_differs: int
    worst: float
    """Largest relative error over results in the normal range, in epsilons of the dtype."""


def whole_range(dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Every value of a small dtype, or bit patterns spread over all of a large one's."""
    generator = torch.Generator().manual_seed(seed)
    if dtype in (torch.float16, torch.bfloat16):
        values = torch.arange(-32768, 32768).to(torch.int16).view(dtype)
    elif dtype == torch.float32:
        patterns = torch.arange(0, 1 << 32, 1 << 15, dtype=torch.int64).to(torch.int32)
        middle = torch.linspace(-12, 12, 1 << 16).view(torch.int32)
        values = torch.cat([patterns + 777, middle]).view(dtype)
    elif dtype == torch.bool:
        values = torch.tensor([False, True] * 32)
    elif dtype in (torch.int8, torch.uint8):
        values = torch.arange(256).repeat(64).to(dtype)
    else:
        info = torch.iinfo(dtype)
        wide = torch.rand(8000, generator=generator, dtype=torch.float64) * 2 - 1
        small = torch.randint(-300, 300, (4000,), generator=generator)
        ends = torch.tensor([0, 1, -1, info.max, info.min])
        values = torch.cat([small, (wide * (info.max * 0.999)).to(torch.int64), ends]).to(dtype)
    return values if not seed else values[torch.randperm(len(values), generator=generator)]


def dense_kernels(library: Library, op: str) -> list[tuple[str, torch.dtype, torch.dtype]]:
    """(kernel, result dtype, input dtype) of an operator's contiguous kernels."""
    names = "|".join(DTYPES)
    pattern = re.compile(rf"{op}_dense_({names})_({names})")
    return [
        (name, DTYPES[match[1]], DTYPES[match[2]])
        for name in library.names()
        if (match := pattern.fullmatch(name))
    ]


def bind(index: int, tensor: torch.Tensor) -> Binding:
    """A buffer binding of a tensor's storage."""
    return Binding(
        index=index, kind="buffer", address=tensor.data_ptr(),
        length=tensor.numel() * tensor.element_size(),
    )  # fmt: skip


def run(
    executor: Executor, library: Library, kernel: str, out: torch.Tensor, *inputs: torch.Tensor
) -> None:
    """Runs a contiguous kernel; its arguments are told apart by their names."""
    bitcode = library.bitcode(kernel)
    assert bitcode is not None
    text = str(llvm.parse_bitcode(bitcode, context=llvm.create_context()))
    numel = torch.tensor([out.numel()], dtype=torch.int32)
    tensors: dict[str, Any] = {"output": out, "out": out, "input": inputs[0], "numel": numel}
    tensors["other"] = inputs[-1]
    bindings = tuple(bind(a.index, tensors[a.name]) for a in read_kernel(text, kernel).buffers)
    launch = Launch(
        kernel=kernel, grid=(out.numel(), 1, 1), threadgroup=(256, 1, 1), mode="threads",
        bindings=bindings,
    )  # fmt: skip
    outcome = executor.run(launch)
    assert isinstance(outcome, Ran), outcome


def _normal(tensor: torch.Tensor) -> torch.Tensor:
    """Where the device does not flush an input to zero."""
    if not tensor.dtype.is_floating_point:
        return torch.ones(tensor.shape, dtype=torch.bool)
    tiny = torch.finfo(torch.float32).tiny
    return ~((tensor.double().abs() < tiny) & (tensor != 0))


def compare(
    executor: Executor,
    library: Library,
    kernel: str,
    function: Function,
    dtypes: tuple[torch.dtype, torch.dtype],
    arity: int,
) -> Comparison:
    """Runs a kernel over the whole range of its input dtype."""
    inputs = tuple(whole_range(dtypes[1], seed) for seed in range(arity))
    got = torch.zeros(len(inputs[0]), dtype=dtypes[0])
    run(executor, library, kernel, got, *inputs)
    wide = inputs
    if dtypes[0].is_floating_point:
        wide = tuple((i if i.dtype.is_floating_point else i.float()).double() for i in inputs)
    reference = function(*wide)
    if not dtypes[0].is_floating_point:
        differs = int((got != reference.to(dtypes[0])).sum())
        return Comparison(inputs, got, reference, 0, 0, float(differs))
    usable = torch.stack([_normal(i) for i in inputs]).all(0)
    return _floats(inputs, got, reference.double(), usable)


def _floats(
    inputs: tuple[torch.Tensor, ...],
    got: torch.Tensor,
    reference: torch.Tensor,
    usable: torch.Tensor,
) -> Comparison:
    info, result = torch.finfo(got.dtype), got.double()
    size = reference.abs()
    normal = usable & (size <= info.max) & (size >= info.tiny)
    finite = normal & result.isfinite()
    error = ((result - reference).abs() / size)[finite]
    return Comparison(
        inputs,
        got,
        reference,
        int(((result.isnan() != reference.isnan()) & usable).sum()),
        int((normal & result.isinf()).sum()),
        float(error.max()) / info.eps if len(error) else 0.0,
    )
