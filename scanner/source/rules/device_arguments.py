"""Devices given as arguments and defaults, and devices that are told apart wrongly."""

from __future__ import annotations

import ast
import re

from scanner.source.here import Here
from scanner.source.interface import Correction, Edit, Hit, Span, source_rule
from scanner.source.rules.guards import never_on_mps
from scanner.source.rules.mending import chosen_device
from scanner.source.rules.shared import is_cuda, word_in_file
from scanner.source.triggers import names, nodes

__all__ = ["RULES"]

_FRAMEWORKS = ("torch.", "torchvision.", "torchaudio.", "transformers.", "sentence_transformers.")
_CHOOSE = "Choose the device once, by torch.accelerator or torch.backends.mps.is_available()."


@source_rule(
    "OPS602",
    "cuda-argument",
    "error",
    since="0.1.0",
    on=[nodes(ast.Call)],
    tokens=["cuda"],
    fixes="unsafe",
)
def cuda_argument(node: ast.AST, here: Here) -> Hit | None:
    """A call is told to work on CUDA: `torch.zeros(3, device="cuda")`.

    PyTorch for macOS is built without CUDA, so the call raises:

        AssertionError: Torch not compiled with CUDA enabled

    opscan reports the keywords `device`, `map_location` and `device_map` of torch's own functions
    and of libraries that hand them to torch, and `torch.set_default_device("cuda")`.
    `torch.load(..., map_location="cuda")` raises too, since the file's tensors have nowhere to go.

    ## What to do

    Choose the device once and hand it on:

        device = torch.accelerator.current_accelerator() or torch.device("cpu")
        torch.zeros(3, device=device)
    """
    if not isinstance(node, ast.Call) or (made := _cuda_given(node, here)) is None:
        return None
    if never_on_mps(here):
        return None
    return here.hit(
        made,
        f'"{here.string(made)}" is a device that no Mac has',
        _CHOOSE,
        correction=chosen_device(made, here),
    )


def _cuda_given(call: ast.Call, here: Here) -> ast.expr | None:
    name = here.resolve(call.func)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name == "torch.set_default_device":
        value = here.argument(call, "device", 0)
        return value if is_cuda(here.string(value)) else None
    if not (name or "").startswith(_FRAMEWORKS) and method not in ("from_pretrained", "to"):
        return None
    if name in ("torch.device", "torch.autocast", "torch.amp.autocast", "torch.amp.GradScaler"):
        return None  # rules of their own
    for keyword in call.keywords:
        known = keyword.arg in ("device", "map_location", "device_map")
        if known and is_cuda(here.string(keyword.value)):
            return keyword.value
    return None


@source_rule(
    "OPS603",
    "cuda-by-default",
    "note",
    since="0.1.0",
    on=[nodes(ast.FunctionDef, ast.AsyncFunctionDef, ast.Call)],
    tokens=["cuda"],
)
def cuda_by_default(node: ast.AST, here: Here) -> Hit | None:
    """A parameter or command-line option is "cuda" unless the caller says otherwise.

    Callers on a Mac who leave it out get `AssertionError: Torch not compiled with CUDA enabled`.
    It is a note: a caller may always say, or a function may look before it uses the value.

    ## What to do

    Make the default `None`, and choose the device in the function: CUDA, else MPS, else the CPU.
    """
    if isinstance(node, ast.Call):
        added = isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"
        value = here.argument(node, "default") if added else None
        return _default_hit(value, here) if value is not None else None
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    for parameter, default in _defaults(node.args):
        if (
            "device" in parameter.arg
            and "autocast" not in node.name
            and (found := _default_hit(default, here)) is not None
        ):
            return found
    return None


def _defaults(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    last = positional[len(positional) - len(arguments.defaults) :]
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return [
        *zip(last, arguments.defaults, strict=True),
        *((each, default) for each, default in keywords if default is not None),
    ]


def _default_hit(value: ast.expr, here: Here) -> Hit | None:
    literal = isinstance(value, ast.Constant) and isinstance(value.value, str)
    if not literal or not is_cuda(here.string(value)) or never_on_mps(here):
        return None
    return here.hit(
        value,
        f'the default "{here.string(value)}" is a device that no Mac has',
        "Default to None and choose CUDA, else MPS, else the CPU.",
    )


_AVAILABLE = "torch.cuda.is_available"


@source_rule(
    "OPS604", "cuda-or-cpu", "warning", since="0.1.0", on=[names(_AVAILABLE)], fixes="unsafe"
)
def cuda_or_cpu(node: ast.AST, here: Here) -> Hit | None:
    """The device is CUDA or the CPU, so a Mac's GPU is never used.

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    On a Mac this is the CPU, without a word. opscan says nothing in files that mention `mps` or
    `torch.accelerator` anywhere.

    ## What to do

        device = torch.accelerator.current_accelerator() or torch.device("cpu")

    `torch.accelerator` is there from torch 2.6. Before:

        device = "cuda" if torch.cuda.is_available() else (
            "mps" if torch.backends.mps.is_available() else "cpu"
        )
    """
    if word_in_file(here, "mps", "accelerator", "xpu", "npu"):
        return None
    choice = next((each for each in reversed(here.path) if isinstance(each, ast.IfExp)), None)
    if choice is None or not any(each is node for each in ast.walk(choice.test)):
        return None
    if _names_cpu(choice.orelse, here) and _names_cuda(choice.body, here):
        text = here.module.source(choice)
        return here.hit(choice, f"{text} never is mps", _CHOOSE, correction=_with_mps(choice, here))
    return None


def _with_mps(choice: ast.IfExp, here: Here) -> Correction | None:
    """MPS before the CPU, in the form that the CPU has there: text, or a device.

    None where more was tested than CUDA: `--no-cuda` may mean no GPU at all.
    """
    asked = here.module.source(here.node)
    torch = asked.removesuffix(".cuda.is_available")
    if torch == asked or not isinstance(choice.test, ast.Call) or choice.test.func is not here.node:
        return None
    cpu = _of_device(choice.orelse, here)
    if not isinstance(cpu, ast.Constant):
        return None
    start, text = here.module.span(choice.orelse), here.module.span(cpu)
    before = here.module.slice(Span(*start[:2], *text[:2]))
    after = here.module.slice(Span(*text[2:], *start[2:]))
    new = f'{before}"mps"{after} if {torch}.backends.mps.is_available() else '
    edit = Edit(Span(*start[:2], *start[:2]), new)
    return Correction("Choose MPS before the CPU", safe=False, edits=(edit,))


def _names_cpu(node: ast.expr, here: Here) -> bool:
    return here.string(_of_device(node, here)) == "cpu"


def _names_cuda(node: ast.expr, here: Here) -> bool:
    said = _of_device(node, here)
    if isinstance(said, ast.JoinedStr) and said.values:
        first = said.values[0]
        return isinstance(first, ast.Constant) and is_cuda(str(first.value).rstrip(":"))
    return is_cuda(here.string(said))


def _of_device(node: ast.expr, here: Here) -> ast.expr:
    """`"cpu"` of `torch.device("cpu")`."""
    if isinstance(node, ast.Call) and here.resolve(node.func) == "torch.device" and node.args:
        return node.args[0]
    return node


_QUESTIONS = (
    "torch.cuda.is_available",
    "torch.backends.mps.is_available",
    "torch.backends.mps.is_built",
    "torch.mps.is_available",
    "torch.accelerator.is_available",
    "torch.backends.cudnn.is_available",
)


@source_rule(
    "OPS605",
    "availability-not-called",
    "error",
    since="0.1.0",
    on=[names(*_QUESTIONS)],
    fixes="unsafe",
)
def availability_not_called(node: ast.AST, here: Here) -> Hit | None:
    """`is_available` without parentheses is a function, and a function is always true.

        if torch.backends.mps.is_available:  # true everywhere

    ## What to do

    Call it: `torch.backends.mps.is_available()`.
    """
    if not isinstance(node, ast.Attribute | ast.Name) or not _is_condition(node, here.parent):
        return None
    *_, line, column = here.module.span(node)
    return here.hit(
        node,
        f"{here.name} is not called here, so it is always true",
        "Add the parentheses.",
        correction=Correction(
            "Call it", safe=False, edits=(Edit(Span(line, column, line, column), "()"),)
        ),
    )


def _is_condition(node: ast.expr, parent: ast.AST) -> bool:
    match parent:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            return test is node
        case ast.Assert(test=test):
            return test is node
        case ast.BoolOp():
            return True
        case ast.UnaryOp(op=ast.Not()):
            return True
    return False


_SECOND = re.compile(r"mps:0*[1-9]\d*")


@source_rule(
    "OPS606",
    "mps-index",
    "error",
    since="0.1.0",
    on=[nodes(ast.Constant)],
    tokens=["mps:"],
    fixes="unsafe",
)
def mps_index(node: ast.AST, here: Here) -> Hit | None:
    """A second MPS device is named; a Mac has one, `mps:0`.

    PyTorch makes one MPS device, however many GPU cores or chips the machine has.

    ## What to do

    Write `mps`, or `mps:0`.
    """
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    if not _SECOND.fullmatch(node.value) or isinstance(here.parent, ast.Compare | ast.JoinedStr):
        return None
    return here.hit(
        node,
        f'"{node.value}" is a second MPS device, and there is one',
        'Use "mps".',
        correction=Correction(
            "Name the only device", safe=False, edits=(Edit(here.module.span(node), '"mps"'),)
        ),
    )


RULES = (
    cuda_argument,
    cuda_by_default,
    cuda_or_cpu,
    availability_not_called,
    mps_index,
)
