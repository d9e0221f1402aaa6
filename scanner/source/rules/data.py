"""Data loaders and their workers."""

from __future__ import annotations

import ast

from scanner.source.here import Here
from scanner.source.interface import Correction, Edit, Hit, source_rule
from scanner.source.rules.guards import never_on_mps
from scanner.source.rules.shared import is_true, word_in_file
from scanner.source.triggers import calls, methods, nodes

__all__ = ["RULES"]

_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")


@source_rule(
    "OPS630",
    "pin-memory-loader",
    "note",
    since="0.1.0",
    on=[calls(*_LOADERS)],
    tokens=["pin_memory"],
    fixes="unsafe",
)
def pin_memory_loader(node: ast.AST, here: Here) -> Hit | None:
    """`DataLoader(pin_memory=True)` warns on a Mac and pins nothing.

        UserWarning: 'pin_memory' argument is set as true but not supported on MPS now, device
        pinned memory won't be used.

    So it is in the loaders of torch 2.7 to 2.15; older ones look for CUDA and pin nothing either.
    The CPU and the GPU of a Mac share their memory; there is little to gain.

    ## What to do

    `pin_memory=torch.cuda.is_available()`.
    """
    given = here.argument(node, "pin_memory") if isinstance(node, ast.Call) else None
    if given is None or not is_true(given) or never_on_mps(here):
        return None
    return here.hit(
        given,
        "pin_memory=True warns on a Mac and pins nothing",
        "Write pin_memory=torch.cuda.is_available().",
        correction=Correction(
            "Pin where there is CUDA",
            safe=False,
            edits=(Edit(here.module.span(given), "torch.cuda.is_available()"),),
            imports=("import torch",),
        ),
    )


@source_rule(
    "OPS634",
    "fork-and-gpu",
    "warning",
    since="0.1.0",
    on=[
        calls(
            *("multiprocessing.set_start_method", "multiprocessing.get_context"),
            *("torch.multiprocessing.set_start_method", "torch.multiprocessing.get_context"),
        )
    ],
    tokens=["fork"],
)
def fork_and_gpu(node: ast.AST, here: Here) -> Hit | None:
    """Processes are forked, and a forked process cannot use the GPU that its parent has used.

    Metal does not survive a fork, as CUDA does not; Apple's frameworks may end the child. Python
    on macOS spawns for this reason.

    ## What to do

    Use "spawn", and let worker processes stay on the CPU.
    """
    if not isinstance(node, ast.Call) or "torch" not in here.module.text:
        return None
    given = here.argument(node, "method", 0)
    if here.string(given) != "fork" or here.conditions:
        return None
    return here.hit(
        node, '"fork" does not go together with a Mac\'s GPU', 'Use "spawn", the default on macOS.'
    )


@source_rule(
    "OPS635",
    "lambda-for-workers",
    "error",
    since="0.1.0",
    on=[calls(*_LOADERS)],
    tokens=["num_workers"],
)
def lambda_for_workers(node: ast.AST, here: Here) -> Hit | None:
    """A lambda is handed to data loader workers, and cannot be sent to them on macOS.

    Workers are spawned there, so that what they need is pickled:

        AttributeError: Can't pickle local object '<lambda>'

    On Linux they are forked and the line works.

    ## What to do

    Write a function at module level.
    """
    if not isinstance(node, ast.Call) or not _workers(node, here):
        return None
    for name in ("collate_fn", "worker_init_fn"):
        given = here.argument(node, name)
        if given is not None and isinstance(here.value(given), ast.Lambda):
            if word_in_file(here, "multiprocessing_context", "set_start_method"):
                return None
            return here.hit(
                given,
                f"{name} is a lambda, which spawned workers cannot be sent",
                "Write a function at module level.",
            )
    return None


def _workers(call: ast.Call, here: Here) -> int:
    given = here.argument(call, "num_workers")
    value = None if given is None else here.value(given)
    if isinstance(value, ast.Constant) and isinstance(value.value, int):
        return value.value
    return 0


@source_rule(
    "OPS636",
    "workers-without-main-guard",
    "error",
    since="0.1.0",
    on=[nodes(ast.For)],
    tokens=["num_workers"],
)
def workers_without_main_guard(node: ast.AST, here: Here) -> Hit | None:
    """A script starts worker processes at module level, which on macOS import it again.

    Workers are spawned there: each imports the script, and comes to the same loop.

        RuntimeError: An attempt has been made to start a new process before the current process
        has finished its bootstrapping phase.

    On Linux, where they are forked, the script works.

    ## What to do

    Put what the script does into a function, and call it below `if __name__ == "__main__":`.
    """
    if not isinstance(node, ast.For) or not here.at_module_level or here.conditions:
        return None
    over = node.iter
    if isinstance(over, ast.Call) and here.resolve(over.func) == "builtins.enumerate" and over.args:
        over = over.args[0]
    made = here.value(over)
    if here.maker(over) not in _LOADERS or not isinstance(made, ast.Call):
        return None
    if not _workers(made, here) or word_in_file(here, "set_start_method", "mp_context"):
        return None
    return here.hit(
        over,
        "worker processes start while the script is imported, and each of them imports it again",
        'Put the loop below `if __name__ == "__main__":`.',
    )


_DATASETS = ("torch.utils.data.Dataset", "torch.utils.data.IterableDataset")


@source_rule(
    "OPS637",
    "device-in-dataset",
    "warning",
    since="0.1.0",
    on=[methods("to", "cuda")],
    tokens=["Dataset"],
)
def device_in_dataset(node: ast.AST, here: Here) -> Hit | None:
    """A dataset moves each sample to the GPU by itself.

    In worker processes this cannot work: MPS tensors cannot be sent to another process. Without
    workers every sample is a small copy of its own, where one a batch would do.

    ## What to do

    Return CPU tensors, and move the batch in the training loop.
    """
    classes = [each for each in here.path if isinstance(each, ast.ClassDef)]
    names = {each.name for each in here.path if isinstance(each, ast.FunctionDef)}
    if not classes or not names & {"__getitem__", "__iter__"} or not isinstance(node, ast.Call):
        return None
    if not any(here.resolve(base) in _DATASETS for base in classes[-1].bases):
        return None
    device = here.argument(node, "device", 0)
    said = "" if device is None else here.module.source(device).lower()
    if here.name == "to" and "device" not in said and here.string(device) not in ("mps", "cuda"):
        return None
    if never_on_mps(here):
        return None
    return here.hit(
        node,
        "each sample is moved to the device by itself, and in workers not at all",
        "Move the batch in the training loop.",
    )


RULES = (
    pin_memory_loader,
    fork_and_gpu,
    lambda_for_workers,
    workers_without_main_guard,
    device_in_dataset,
)
