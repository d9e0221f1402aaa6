"""What makes each step of a training loop wait for the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from scanner.source.here import Here
from scanner.source.interface import Hit, source_rule
from scanner.source.triggers import calls, methods, nodes

__all__ = ["RULES"]

_LATER = "Add it up on the device, and read it every hundred steps."


def _each_step(here: Here) -> bool:
    """Whether the node is reached in every step, as far as the source shows.

    Its innermost loop goes backward itself, rather than a loop inside it, and nothing was tested in
    the loop: `if step % 100 == 0` is what the rules ask for.
    """
    if not here.in_training_loop:
        return False
    loops = here.loops
    if not loops or not isinstance(loops[0], ast.For | ast.While | ast.AsyncFor):
        return False
    if not any(isinstance(each, ast.Call) and _steps(each) for each in _own(loops[0])):
        return False
    within = here.path[here.path.index(loops[0]) :]
    return not any(isinstance(each, ast.If | ast.IfExp | ast.Try) for each in within[1:])


def _steps(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward"


def _own(loop: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a loop without those of loops and functions in it."""
    for child in ast.iter_child_nodes(loop):
        if not isinstance(child, _INNER):
            yield child
            yield from _own(child)


_INNER = (ast.For, ast.While, ast.AsyncFor, ast.FunctionDef, ast.Lambda, ast.ClassDef)


def _losses(here: Here) -> frozenset[str]:
    """Names on which the innermost loop calls `.backward()`: tensors on the device."""
    called = (each for each in _own(here.loops[0]) if isinstance(each, ast.Call) and _steps(each))
    receivers = (each.func.value for each in called if isinstance(each.func, ast.Attribute))
    return frozenset(each.id for each in receivers if isinstance(each, ast.Name))


@source_rule("OPS670", "item-each-step", "note", since="0.1.0", on=[methods("item")])
def item_each_step(node: ast.AST, here: Here) -> Hit | None:
    """`.item()` in every step waits for the GPU.

    The value has to come to the CPU, so Python stops until the GPU has done all that was asked of
    it, and the GPU then stops until Python asks again. On MPS, where every call is encoded by the
    CPU, this is a good part of a small model's step.

    ## What to do

    Add the loss up on the device, `total += loss.detach()`, and read it every hundred steps or at
    the end of the epoch. opscan says nothing behind `if step % 100 == 0:`.
    """
    if not isinstance(node, ast.Call) or node.args or node.keywords or not _each_step(here):
        return None
    return here.hit(node, f"{_short(node, here)} waits for the GPU in every step", _LATER)


@source_rule(
    "OPS671", "copy-to-cpu-each-step", "note", since="0.1.0", on=[methods("cpu", "tolist", "numpy")]
)
def copy_to_cpu_each_step(node: ast.AST, here: Here) -> Hit | None:
    """A tensor is copied to the CPU in every step, which waits for the GPU.

    `.cpu()`, `.tolist()` and `.numpy()` need the values: Python stops until the GPU is done.

    ## What to do

    Keep results on the device and copy them once: `torch.cat(outputs).cpu()` after the loop.
    """
    if not isinstance(node, ast.Call) or node.args or not _each_step(here):
        return None
    outer = here.parent
    if isinstance(outer, ast.Attribute) and outer.attr in ("numpy", "tolist", "item"):
        return None  # the outermost call of the chain is told
    if here.name == "numpy" and not _copies(node):
        return None
    return here.hit(node, f"{_short(node, here)} waits for the GPU in every step", _LATER)


def _copies(call: ast.Call) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == "cpu" for each in ast.walk(call))


@source_rule(
    "OPS672",
    "loss-read-each-step",
    "note",
    since="0.1.0",
    on=[calls("builtins.print", "builtins.float"), nodes(ast.FormattedValue)],
    tokens=["backward"],
)
def loss_read_each_step(node: ast.AST, here: Here) -> Hit | None:
    """The loss is printed or converted in every step, which waits for the GPU as `.item()` does.

    `print(loss)`, `float(loss)` and `f"{loss:.3f}"` read the value: Python stops until the GPU is
    done. opscan knows a loss by the `.backward()` that is called on it.

    ## What to do

    Print every hundred steps.
    """
    if not _each_step(here):
        return None
    if isinstance(node, ast.Call):
        given: list[ast.expr] = node.args
    else:
        given = [node.value] if isinstance(node, ast.FormattedValue) else []
    read = [each.id for each in given if isinstance(each, ast.Name) and each.id in _losses(here)]
    if not read:
        return None
    return here.hit(node, f"reading {read[0]} waits for the GPU in every step", _LATER)


_TESTS = ("isnan", "isinf", "isfinite", "any", "all", "equal", "allclose", "is_nonzero")


@source_rule(
    "OPS673",
    "branch-on-tensor-each-step",
    "note",
    since="0.1.0",
    on=[calls(*(f"torch.{name}" for name in _TESTS))],
    tokens=["backward"],
)
def branch_on_tensor(node: ast.AST, here: Here) -> Hit | None:
    """A branch depends on a tensor's values in every step, which waits for the GPU.

        if torch.isnan(loss):

    Python has to know the value to decide: it stops until the GPU is done.

    ## What to do

    Look every hundred steps; or let the gradient scaler or `clip_grad_norm_` see to it, which
    decide on the device.
    """
    branch = next((each for each in reversed(here.path) if isinstance(each, ast.If)), None)
    if branch is None or not any(each is node for each in ast.walk(branch.test)):
        return None
    here_or_above = here.path[: here.path.index(branch) + 1]
    if not any(isinstance(each, ast.For | ast.While) for each in here_or_above):
        return None
    loop = here.loops[0] if here.loops else None
    if loop is None or any(
        isinstance(each, ast.If | ast.Try) for each in here_or_above[here.path.index(loop) + 1 : -1]
    ):
        return None
    if not any(isinstance(each, ast.Call) and _steps(each) for each in _own(loop)):
        return None
    return here.hit(
        node, f"a branch on {here.name}() waits for the GPU in every step", "Look less often."
    )


_EMPTIES = ("torch.mps.empty_cache", "torch.accelerator.empty_cache", "gc.collect")


@source_rule(
    "OPS674",
    "cache-emptied-each-step",
    "warning",
    since="0.1.0",
    on=[calls(*_EMPTIES)],
    tokens=["empty_cache", "collect"],
)
def cache_emptied_each_step(node: ast.AST, here: Here) -> Hit | None:
    """Memory is given back in every step, and asked for again in the next.

    `torch.mps.empty_cache()` waits for the GPU and returns buffers to Metal that the next step
    needs; allocating them anew is far slower than taking them from the cache. `gc.collect()` looks
    at every Python object.

    ## What to do

    Leave it out, or call it once an epoch. Where memory runs out, make the batch smaller.
    """
    if not _each_step(here):
        return None
    return here.hit(node, f"{here.name}() in every step slows training", "Call it once an epoch.")


@source_rule(
    "OPS675",
    "synchronize-each-step",
    "note",
    since="0.1.0",
    on=[calls("torch.mps.synchronize", "torch.accelerator.synchronize")],
    tokens=["synchronize"],
)
def synchronize_each_step(node: ast.AST, here: Here) -> Hit | None:
    """Every step waits for the GPU, which right results do not need.

    PyTorch waits by itself where a value is read. An explicit wait is for measuring time.

    ## What to do

    Leave it out when nothing is measured.
    """
    if not _each_step(here) or "time" in here.module.source(here.loops[0]):
        return None
    return here.hit(node, f"{here.name}() waits for the GPU in every step", "Leave it out.")


def _short(call: ast.Call, here: Here) -> str:
    text = " ".join(here.module.source(call).split())
    return text if len(text) <= 40 else f"…{text[-39:]}"


RULES = (
    item_each_step,
    copy_to_cpu_each_step,
    loss_read_each_step,
    branch_on_tensor,
    cache_emptied_each_step,
    synchronize_each_step,
)
