"""Dtypes that the source names."""

from __future__ import annotations

import ast

from scanner.source.here import Here
from scanner.source.interface import Correction, Edit, Hit, source_rule
from scanner.source.rules.reaching import stays_off_gpu
from scanner.source.rules.shared import annotated, on_cpu
from scanner.source.triggers import names

__all__ = ["RULES"]

_NARROWER = {
    "torch.float64": "float32",
    "torch.double": "float32",
    "torch.complex128": "complex64",
    "torch.cdouble": "complex64",
}


@source_rule(
    "OPS620", "explicit-float64", "warning", since="0.1.0", on=[names(*_NARROWER)], fixes="unsafe"
)
def explicit_float64(node: ast.AST, here: Here) -> Hit | None:
    """The source asks for float64 or complex128, which MPS does not have.

    A tensor of these dtypes cannot be made on, or moved to, `mps`:

        TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't
        support float64. Please use float32 instead.

    opscan says nothing where the dtype is only compared, listed or looked up, where the tensor is
    seen to stay on the CPU, and behind a test for the device. In a function something has to show
    that a device comes there: a layer or model around, a device that is mentioned, a training step.
    It is a warning, since the tensor may stay on the CPU all the same. A scan that captures the
    model tells (OPS104).

    ## What to do

    Use `torch.float32` (`torch.complex64`). Where the precision is needed, compute that part on
    the CPU and convert the result before it is moved: `solve(a.cpu().double()).float().to("mps")`.
    """
    if not isinstance(node, ast.Attribute) or annotated(here) or _makes_nothing(here):
        return None
    whole = _whole(here)
    script = here.function is None and isinstance(here.statement, ast.Assign | ast.AnnAssign)
    if (whole is None and not script) or stays_off_gpu(whole or node, here):
        return None  # who uses a dtype that has a name is not seen
    dtype = here.name.rpartition(".")[2]
    narrower = _NARROWER[here.name]
    prefix = here.module.source(node).rpartition(".")[0]
    stays = _is_made_on_cpu(here)
    return here.hit(
        node,
        f"{dtype} does not exist on MPS"
        + (", so this tensor must stay on the CPU" if stays else ""),
        f"Use {narrower}, or keep this tensor on the CPU.",
        correction=Correction(
            f"Replace {dtype} by {narrower}",
            safe=False,
            edits=(Edit(here.module.span(node), f"{prefix}.{narrower}"),),
        ),
    )


_ASK = ("torch.finfo", "builtins.isinstance", "torch.promote_types", "torch.result_type")
_LISTS = (ast.Compare, ast.Dict, ast.Set, ast.List, ast.Tuple, ast.Subscript)


def _whole(here: Here) -> ast.Call | None:
    """The call that the dtype is given to."""
    return next((each for each in reversed(here.path) if isinstance(each, ast.Call)), None)


def _makes_nothing(here: Here) -> bool:
    """`x.dtype == torch.float64` asks, `x.to(torch.float64).numpy()` leaves for the CPU."""
    around = [each for each in here.path if isinstance(each, ast.expr)]
    if any(isinstance(each, _LISTS) for each in around):
        return True
    calls_around = [each for each in around if isinstance(each, ast.Call)]
    if any(here.resolve(each.func) in _ASK or _looks_up(each) for each in calls_around):
        return True
    if any(_adjusts(each, here) for each in around):
        return True
    return any(_on_cpu(part) for each in calls_around for part in ast.walk(each)) or any(
        isinstance(each, ast.Attribute) and each.attr in ("numpy", "cpu", "tolist", "item")
        for each in around
    )


def _looks_up(call: ast.Call) -> bool:
    """`options.get("dtype", torch.float64)`."""
    return getattr(call.func, "attr", getattr(call.func, "id", "")) in _LOOK_UPS


_LOOK_UPS = frozenset({"get", "getattr", "setdefault", "pop", "add_argument"})
_MAKERS = frozenset(
    [
        *("torch.zeros", "torch.ones", "torch.empty", "torch.full", "torch.eye", "torch.tensor"),
        *("torch.arange", "torch.linspace", "torch.rand", "torch.randn", "torch.logspace"),
    ]
)


def _is_made_on_cpu(here: Here) -> bool:
    """`torch.zeros(3, dtype=torch.float64)`: a new tensor, without a device."""
    call = _whole(here)
    if call is None or here.resolve(call.func) not in _MAKERS:
        return False
    return not any(each.arg in ("device", None) for each in call.keywords)


def _adjusts(node: ast.expr, here: Here) -> bool:
    """`suited(torch.float64, x.device)`, `device=host`, `float64 if x.dtype == float64`."""
    if isinstance(node, ast.IfExp):
        return any(word in here.module.source(node.test) for word in ("float64", "double", "mps"))
    if not isinstance(node, ast.Call):
        return False
    name = here.module.source(node.func).rpartition(".")[2]
    return "device" in name or on_cpu(here.argument(node, "device"), here)


def _on_cpu(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ("cpu", "numpy")
    return isinstance(node, ast.Constant) and node.value == "cpu"


RULES = (explicit_float64,)
