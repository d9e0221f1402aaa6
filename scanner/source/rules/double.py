"""float64 that comes by conversion, by default and by legacy types."""

from __future__ import annotations

import ast

from scanner.source.here import Here
from scanner.source.interface import Correction, Edit, Hit, Span, source_rule
from scanner.source.rules.reaching import stays_off_gpu
from scanner.source.rules.shared import annotated, on_cpu
from scanner.source.triggers import calls, methods, names

__all__ = ["RULES"]

_KEEP = "Use float32, or keep this tensor on the CPU."
_STAYS = frozenset({"cpu", "numpy", "item", "tolist"})


@source_rule(
    "OPS621", "double-call", "warning", since="0.1.0", on=[methods("double")], fixes="unsafe"
)
def double_call(node: ast.AST, here: Here) -> Hit | None:
    """`.double()` makes float64, which MPS does not have.

    On a tensor or module that is on the GPU it raises:

        TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't
        support float64.

    It is a warning, since the tensor may be on the CPU. `x.cpu().double()` is fine, and in
    functions something has to show that a device comes there, as for OPS620.

    ## What to do

    Use `.float()`; or compute on the CPU and convert back: `f(x.cpu().double()).float()`.
    """
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return None
    if not isinstance(node.func, ast.Attribute) or _on_cpu(node, here):
        return None
    if stays_off_gpu(node, here):
        return None
    start = here.module.span(node.func.value)
    end = here.module.span(node)
    span = Span(start.end_line, start.end_column, end.end_line, end.end_column)
    return here.hit(
        node,
        ".double() makes float64, which does not exist on MPS",
        _KEEP,
        correction=Correction(
            "Replace .double() by .float()", safe=False, edits=(Edit(span, ".float()"),)
        ),
    )


def _on_cpu(call: ast.Call, here: Here) -> bool:
    """Whether the chain around shows that the value is, or goes, to the CPU or to NumPy."""
    below: ast.AST = call.func
    while isinstance(below, ast.Attribute | ast.Call | ast.Subscript):
        if isinstance(below, ast.Attribute) and below.attr in _STAYS:
            return True
        if isinstance(below, ast.Call):
            if any(on_cpu(each, here) for each in below.args):
                return True
            name = here.resolve(below.func) or ""
            if name in ("torch.from_numpy", "torch.tensor", "torch.as_tensor"):
                return "device" not in {keyword.arg for keyword in below.keywords}
        below = below.func if isinstance(below, ast.Call) else below.value
    above = [each for each in here.path if isinstance(each, ast.Attribute)]
    return any(each.attr in _STAYS and _contains(each, call) for each in above)


def _contains(outer: ast.AST, inner: ast.AST) -> bool:
    return any(each is inner for each in ast.walk(outer))


_DEFAULTS = {"torch.float64", "torch.double", "torch.DoubleTensor", "torch.cuda.DoubleTensor"}


@source_rule(
    "OPS622",
    "float64-by-default",
    "error",
    since="0.1.0",
    on=[calls("torch.set_default_dtype", "torch.set_default_tensor_type")],
)
def float64_by_default(node: ast.AST, here: Here) -> Hit | None:
    """Every new floating tensor is made float64, so that none can be on MPS.

    After `torch.set_default_dtype(torch.float64)` the parameters of every layer are float64, and
    `model.to("mps")` raises a TypeError.

    ## What to do

    Keep the default, and ask for float64 where it is needed, on the CPU.
    """
    if not isinstance(node, ast.Call) or not node.args:
        return None
    given = here.resolve(node.args[0]) or here.string(node.args[0])
    if given not in _DEFAULTS:
        return None
    return here.hit(node, f"{here.name}({given}) makes every tensor float64", _KEEP)


_LEGACY = ("torch.DoubleTensor", "torch.ComplexDoubleTensor")


@source_rule(
    "OPS625",
    "double-tensor-type",
    "warning",
    since="0.1.0",
    on=[names(*_LEGACY)],
    tokens=["DoubleTensor"],
)
def double_tensor_type(node: ast.AST, here: Here) -> Hit | None:
    """`torch.DoubleTensor` is float64 on the CPU, whatever the device of the tensor was.

    `x.type(torch.DoubleTensor)` moves a tensor off the GPU; what comes out cannot go back to MPS,
    which has no float64.

    ## What to do

    `x.to(torch.float32)`; `torch.tensor(data, dtype=torch.float32)`.
    """
    asks = any(isinstance(each, ast.Compare | ast.Dict) for each in here.path)
    used = any(isinstance(each, ast.Call) for each in here.path)
    if asks or not used or annotated(here) or _is_instance_test(here):
        return None
    if not isinstance(node, ast.expr) or stays_off_gpu(node, here):
        return None
    return here.hit(node, f"{here.name} is float64, which does not exist on MPS", _KEEP)


def _is_instance_test(here: Here) -> bool:
    return any(
        isinstance(each, ast.Call) and here.resolve(each.func) == "builtins.isinstance"
        for each in here.path
    )


_FACTORIES = ("zeros", "ones", "empty", "full", "tensor", "as_tensor", "arange", "linspace")
_MORE = ("eye", "rand", "randn", "logspace", "asarray", "zeros_like", "ones_like", "full_like")


@source_rule(
    "OPS626",
    "python-float-dtype",
    "warning",
    since="0.1.0",
    on=[calls(*(f"torch.{name}" for name in (*_FACTORIES, *_MORE)))],
    tokens=["dtype=float", "dtype=complex"],
    fixes="unsafe",
)
def python_float_dtype(node: ast.AST, here: Here) -> Hit | None:
    """`dtype=float` is float64 in PyTorch, as in NumPy, and MPS does not have it.

        torch.zeros(3, dtype=float).dtype    # torch.float64
        torch.zeros(3, dtype=complex).dtype  # torch.complex128

    ## What to do

    Write `dtype=torch.float32` (`torch.complex64`).
    """
    if not isinstance(node, ast.Call) or (given := here.argument(node, "dtype")) is None:
        return None
    name = here.resolve(given)
    narrower = {"builtins.float": "torch.float32", "builtins.complex": "torch.complex64"}
    if name not in narrower or stays_off_gpu(node, here):
        return None
    return here.hit(
        given,
        f"dtype={name.rpartition('.')[2]} is double precision, which does not exist on MPS",
        f"Write dtype={narrower[name]}.",
        correction=Correction(
            f"Write {narrower[name]}",
            safe=False,
            edits=(Edit(here.module.span(given), narrower[name]),),
            imports=("import torch",),
        ),
    )


RULES = (
    double_call,
    float64_by_default,
    double_tensor_type,
    python_float_dtype,
)
