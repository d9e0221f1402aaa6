"""Environment variables and settings, at the wrong time or with values that PyTorch refuses."""

from __future__ import annotations

import ast
from typing import NamedTuple

from scanner.source.here import Here
from scanner.source.interface import Correction, Hit, source_rule
from scanner.source.rules.guards import never_on_mps
from scanner.source.rules.moving import above_imports
from scanner.source.rules.shared import word_in_file
from scanner.source.triggers import calls, nodes

__all__ = ["RULES"]

_FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"
_HIGH, _LOW = "PYTORCH_MPS_HIGH_WATERMARK_RATIO", "PYTORCH_MPS_LOW_WATERMARK_RATIO"
_TORCH = ("torch", "torchvision", "torchaudio", "timm", "pytorch_lightning", "lightning")
"""Imports that import torch."""


class _Setting(NamedTuple):
    """`os.environ[variable] = value`."""

    variable: str
    value: ast.expr


def _setting(node: ast.AST, here: Here) -> _Setting | None:
    """What a statement or call sets in the environment."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=mapping, slice=key)], value=value):
            if here.resolve(mapping) != "os.environ":
                return None
        case ast.Call(func=function, args=[key, value], keywords=[]):
            if here.resolve(function) not in ("os.environ.setdefault", "os.putenv"):
                return None
        case _:
            return None
    name = here.string(key)
    return _Setting(name, value) if name is not None else None


@source_rule(
    "OPS660",
    "variable-set-too-late",
    "warning",
    since="0.1.0",
    on=[nodes(ast.Assign), calls("os.environ.setdefault", "os.putenv")],
    tokens=[_FALLBACK, "PYTORCH_MPS_"],
    fixes="safe",
)
def variable_set_too_late(node: ast.AST, here: Here) -> Hit | None:
    """A variable for MPS is set after torch has been imported, which is too late.

    `PYTORCH_ENABLE_MPS_FALLBACK` is read once, when torch is loaded: set afterwards, ops without a
    kernel still raise. The allocator's variables are read when torch is loaded or when the device
    is first used, depending on the release.

    ## What to do

    Set it above the first import of torch and of what imports torch, or in the shell:
    `PYTORCH_ENABLE_MPS_FALLBACK=1 python train.py`.
    """
    setting = _setting(node, here)
    if setting is None or not setting.variable.startswith((_FALLBACK, "PYTORCH_MPS_")):
        return None
    if not any(here.after_import(module) for module in _TORCH):
        return None
    sure = setting.variable == _FALLBACK
    return here.hit(
        node,
        f"{setting.variable} is set after torch was imported"
        + (", which has read it by then" if sure else ", which may have read it by then"),
        "Set it above the first import of torch, or in the shell.",
        severity=None if sure else "note",
        correction=Correction("Set it above the imports", safe=True, edits=edits)
        if (edits := above_imports(node, here.module))
        else None,
    )


@source_rule(
    "OPS661",
    "variable-refused",
    "error",
    since="0.1.0",
    on=[nodes(ast.Assign), calls("os.environ.setdefault", "os.putenv")],
    tokens=[_FALLBACK, "PYTORCH_MPS_"],
)
def variable_refused(node: ast.AST, here: Here) -> Hit | None:
    """A variable for MPS has a value that Python or PyTorch refuses.

    - The environment holds text: `os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = 1` is a TypeError.
    - `PYTORCH_ENABLE_MPS_FALLBACK` is read with `std::stoi`: `"true"` is no number, and
      `import torch` ends with `invalid_argument`.
    - `PYTORCH_MPS_HIGH_WATERMARK_RATIO` must be from 0 to 2, and not below the low one, which is
      1.4 unless set: `"0.7"` alone raises `RuntimeError: invalid low watermark ratio 1.4`.

    ## What to do

    Write `"1"` or `"0"` for the fallback. Set both watermarks, low ones first.
    """
    setting = _setting(node, here)
    if setting is None or not setting.variable.startswith((_FALLBACK, "PYTORCH_MPS_")):
        return None
    value = here.value(setting.value)
    if not isinstance(value, ast.Constant):
        return None
    why = _refused(setting.variable, value.value, here)
    return here.hit(node, *why) if why else None


def _refused(variable: str, value: object, here: Here) -> tuple[str, str] | None:
    if not isinstance(value, str):
        return (
            f"{variable} is given {value!r}, and the environment takes text alone",
            f'Write "{value:d}".' if isinstance(value, int) else f'Write "{value}".',
        )
    number = _number(value)
    if variable == _FALLBACK and (number is None or value.strip()[0] not in "+-0123456789"):
        return f'{variable} must be a number, and "{value}" ends import torch', 'Write "1".'
    if variable != _HIGH:
        return None
    if number is None or not 0 <= number <= 2:
        return f'{variable} must be from 0 to 2, not "{value}"', "Choose a ratio from 0 to 2."
    if 0 < number < 1.4 and not word_in_file(here, _LOW):
        return (
            f"{variable}={value} is below the low watermark, which is 1.4 unless set",
            f"Set {_LOW} too, to at most {value}.",
        )
    return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


_OF_CUDA = {
    "CUDA_VISIBLE_DEVICES": "chooses among CUDA devices",
    "CUDA_LAUNCH_BLOCKING": "makes CUDA's calls wait",
    "CUDA_DEVICE_ORDER": "orders CUDA devices",
    "PYTORCH_CUDA_ALLOC_CONF": "sets up CUDA's allocator",
}


@source_rule(
    "OPS662",
    "cuda-variable",
    "note",
    since="0.1.0",
    on=[nodes(ast.Assign), calls("os.environ.setdefault", "os.putenv")],
    tokens=list(_OF_CUDA),
)
def cuda_variable(node: ast.AST, here: Here) -> Hit | None:
    """A variable that is CUDA's alone is set; on a Mac it does nothing.

    `CUDA_VISIBLE_DEVICES=""` does not keep a program off the GPU there, and
    `CUDA_LAUNCH_BLOCKING=1` does not make errors appear where they arise.

    ## What to do

    Choose the device in the program. MPS has `PYTORCH_MPS_HIGH_WATERMARK_RATIO` for its memory and
    `torch.mps.synchronize()` to wait.
    """
    setting = _setting(node, here)
    if setting is None or setting.variable not in _OF_CUDA or never_on_mps(here):
        return None
    if setting.variable == "CUDA_LAUNCH_BLOCKING" and here.string(setting.value) == "0":
        return None  # its default
    return here.hit(
        node,
        f"{setting.variable} {_OF_CUDA[setting.variable]} and does nothing on a Mac",
        "Choose the device in the program.",
    )


@source_rule(
    "OPS663",
    "cudnn-determinism",
    "note",
    since="0.1.0",
    on=[nodes(ast.Assign)],
    tokens=["deterministic"],
)
def cudnn_determinism(node: ast.AST, here: Here) -> Hit | None:
    """`torch.backends.cudnn.deterministic` says nothing about MPS.

    The setting is cuDNN's. Where a program relies on it for equal runs, a Mac may give others.

    ## What to do

    Seed with `torch.manual_seed`, and ask for `torch.use_deterministic_algorithms(True)`, which
    raises where an op has no deterministic kernel. opscan says nothing where the file calls it.
    """
    if not isinstance(node, ast.Assign) or word_in_file(here, "use_deterministic_algorithms"):
        return None
    setting = "torch.backends.cudnn.deterministic"
    if not any(here.resolve(target) == setting for target in node.targets):
        return None
    if not isinstance(node.value, ast.Constant) or node.value.value is not True:
        return None
    if never_on_mps(here):
        return None
    return here.hit(
        node,
        f"{setting} has no meaning for MPS",
        "Call torch.use_deterministic_algorithms(True) too.",
    )


RULES = (
    variable_set_too_late,
    variable_refused,
    cuda_variable,
    cudnn_determinism,
)
