"""float64 that comes out of NumPy and pandas."""

from __future__ import annotations

import ast
import re

from scanner.source.here import Here
from scanner.source.interface import Correction, Edit, Hit, Span, source_rule
from scanner.source.rules.reaching import stays_off_gpu
from scanner.source.rules.shared import added_argument
from scanner.source.triggers import calls

__all__ = ["RULES"]

_STAYS = frozenset({"cpu", "numpy", "item", "tolist"})
_MADE = {
    "zeros": 1,
    "ones": 1,
    "empty": 1,
    "eye": 3,
    "identity": 1,
    "linspace": 5,
    "loadtxt": 1,
    "hanning": 1,
    "hamming": 1,
    "float64": 1,
}
"""Function of NumPy → position of its dtype; what it makes is float64 without one."""
_DRAWN = {
    "rand": 0,
    "randn": 0,
    "random": 0,
    "standard_normal": 0,
    "exponential": 1,
    "normal": 2,
    "uniform": 2,
    "beta": 2,
}
"""Function of numpy.random → position of its size, without which it draws a Python float."""
_TAKES = ("torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.asarray")
_SETTLES = frozenset({"float", "half", "bfloat16", "long", "int", "bool", "type", "to", *_STAYS})


@source_rule(
    "OPS623", "numpy-float64", "warning", since="0.1.0", on=[calls(*_TAKES)], fixes="unsafe"
)
def numpy_float64(node: ast.AST, here: Here) -> Hit | None:
    """A tensor takes over NumPy's float64, which MPS does not have.

    NumPy makes float64 unless told otherwise, and `torch.from_numpy` and `torch.tensor` keep an
    array's dtype. On the CPU this is only slow; moving the tensor raises:

        TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't
        support float64.

    opscan reports arrays that are seen to be float64, where nothing converts the tensor at once.

    ## What to do

    Give a dtype: `torch.tensor(array, dtype=torch.float32)`, `torch.from_numpy(array).float()`.
    """
    if not isinstance(node, ast.Call) or not node.args or len(node.args) > 1:
        return None
    made = here.value(node.args[0])
    if not _is_float64(made, here) or _is_settled(node, here) or stays_off_gpu(node, here):
        return None
    return here.hit(
        node,
        f"{here.module.source(node.args[0])} is float64, and so is the tensor",
        "Give dtype=torch.float32, or append .float().",
        correction=_narrowed(node, here),
    )


def _narrowed(node: ast.Call, here: Here) -> Correction:
    if here.name == "torch.from_numpy":
        *_, line, column = here.module.span(node)
        appended = Edit(Span(line, column, line, column), ".float()")
        return Correction("Append .float()", safe=False, edits=(appended,))
    edits = added_argument(here, node, "dtype=torch.float32")
    return Correction("Give the dtype", safe=False, edits=edits, imports=("import torch",))


def _is_float64(node: ast.expr, here: Here) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = here.resolve(node.func) or ""
    if name == "numpy.array":
        return len(node.args) == 1 and not node.keywords and _holds_floats(node.args[0])
    module, _, function = name.rpartition(".")
    given = {keyword.arg for keyword in node.keywords}
    if module == "numpy.random" and function in _DRAWN:
        return "size" in given or len(node.args) > _DRAWN[function]
    known = module == "numpy" and function in _MADE
    return known and not given & {"dtype", None} and len(node.args) <= _MADE[function]


def _holds_floats(node: ast.expr) -> bool:
    """A literal list of numbers, one of which is a float."""
    if not isinstance(node, ast.List | ast.Tuple):
        return False
    leaves = [each for each in ast.walk(node) if isinstance(each, ast.expr)]
    literal = (ast.List, ast.Tuple, ast.Constant, ast.UnaryOp)
    return all(isinstance(each, literal) for each in leaves) and any(
        isinstance(each, ast.Constant) and isinstance(each.value, float) for each in leaves
    )


def _is_settled(call: ast.Call, here: Here) -> bool:
    """Whether a dtype is given, or the tensor converted in the same expression."""
    if any(keyword.arg in ("dtype", None) for keyword in call.keywords):
        return True
    for outer in reversed(here.path[:-1]):
        if isinstance(outer, ast.Attribute) and outer.attr in _SETTLES:
            return outer.attr != "to" or _converts(here.path, outer)
        if not isinstance(outer, ast.Attribute | ast.Call):
            return False
    return False


def _converts(path: list[ast.AST], method: ast.Attribute) -> bool:
    """Whether `.to(...)` is given anything but a device by name."""
    outer = path[path.index(method) - 1]
    if not isinstance(outer, ast.Call):
        return False
    every = [*outer.args, *(keyword.value for keyword in outer.keywords)]
    texts = [ast.unparse(each) for each in every]
    return any("torch." in text or "dtype" in text for text in texts)


@source_rule("OPS624", "pandas-float64", "note", since="0.1.0", on=[calls(*_TAKES)], fixes="unsafe")
def pandas_float64(node: ast.AST, here: Here) -> Hit | None:
    """A tensor is made of a data frame's values, which are float64 as a rule.

    pandas reads decimal numbers as float64, and `torch.tensor(frame.values)` keeps it; the tensor
    cannot be moved to MPS. It is a note: the frame's dtypes cannot be seen from the source.

    ## What to do

    Give a dtype: `torch.tensor(frame.to_numpy(), dtype=torch.float32)`.
    """
    if not isinstance(node, ast.Call) or len(node.args) != 1 or "pandas" not in here.module.text:
        return None
    given = node.args[0]
    if _INTEGERS.search(here.module.source(here.statement)):
        return None
    if not _is_frame(given, here) or _is_settled(node, here):
        return None
    return here.hit(
        node,
        f"{here.module.source(given)} is float64 unless the frame was converted",
        "Give dtype=torch.float32, or append .float().",
        correction=_narrowed(node, here),
    )


_INTEGERS = re.compile(r"edge|index|idx|label|id\b", re.IGNORECASE)
"""What the names say of columns that hold integers."""


def _is_frame(node: ast.expr, here: Here) -> bool:
    match node:
        case ast.Attribute(attr="values", value=frame):
            pass
        case ast.Call(func=ast.Attribute(attr="to_numpy", value=frame), args=[], keywords=[]):
            pass
        case _:
            return False
    if isinstance(frame, ast.Subscript):
        if not isinstance(frame.slice, ast.List | ast.Name):
            return False  # one column, which may hold integers
        frame = frame.value
    maker = here.maker(frame) or ""
    return maker.startswith("pandas.") or (isinstance(frame, ast.Name) and "df" in frame.id.lower())


RULES = (numpy_float64, pandas_float64)
