"""Several devices, where a Mac has one."""

from __future__ import annotations

import ast

from scanner.source.here import Here
from scanner.source.interface import Correction, Edit, Hit, source_rule
from scanner.source.rules.guards import never_on_mps
from scanner.source.triggers import calls

__all__ = ["RULES"]

_DISTRIBUTED = "torch.distributed"


@source_rule(
    "OPS650",
    "data-parallel",
    "warning",
    since="0.1.0",
    on=[calls("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")],
)
def data_parallel(node: ast.AST, here: Here) -> Hit | None:
    """`DataParallel` splits a batch over GPUs, and a Mac has one.

    At best it is a detour. Releases up to 2.5 take only CUDA and its like for a device here and run
    the module as it is; from 2.6 on they look for MPS too. Checkpoints saved from inside get the
    prefix `module.` on every name.

    ## What to do

    Wrap where there are several: `if torch.cuda.device_count() > 1:`. opscan is silent behind such
    a test.
    """
    if never_on_mps(here) or any(
        "device_count" in text or "gpu" in text or "parallel" in text or "len(" in text
        for text in (here.module.source(test).lower() for test, _ in here.conditions)
    ):
        return None
    return here.hit(
        node,
        "DataParallel has nothing to split over: a Mac has one GPU",
        "Wrap the model only if torch.cuda.device_count() > 1.",
    )


@source_rule(
    "OPS651",
    "nccl",
    "error",
    since="0.1.0",
    on=[calls(f"{_DISTRIBUTED}.init_process_group", f"{_DISTRIBUTED}.new_group")],
    tokens=["nccl"],
    fixes="safe",
)
def nccl(node: ast.AST, here: Here) -> Hit | None:
    """Processes are to talk by NCCL, which no Mac has.

        RuntimeError: Distributed package doesn't have NCCL built in

    ## What to do

    Use "gloo" where there is no CUDA; its tensors must be on the CPU. Or leave the backend out:
    PyTorch then chooses by device.
    """
    if not isinstance(node, ast.Call):
        return None
    given = here.argument(node, "backend", 0 if here.name.endswith("init_process_group") else None)
    if given is None or (here.string(given) or "").lower() != "nccl" or never_on_mps(here):
        return None
    text = '"nccl" if torch.cuda.is_available() else "gloo"'
    return here.hit(
        given,
        "NCCL needs CUDA, which no Mac has",
        f"Write {text}.",
        correction=Correction(
            "Use gloo where there is no CUDA",
            safe=True,
            edits=(Edit(here.module.span(given), text),),
            imports=("import torch",),
        )
        if isinstance(given, ast.Constant)
        else None,
    )


@source_rule(
    "OPS652",
    "ddp-device-ids",
    "warning",
    since="0.1.0",
    on=[calls("torch.nn.parallel.DistributedDataParallel")],
    tokens=["device_ids"],
)
def ddp_device_ids(node: ast.AST, here: Here) -> Hit | None:
    """`DistributedDataParallel(device_ids=[...])` means GPUs by number, one a process.

    On a Mac there is one GPU, and no collective works on MPS tensors: gloo takes tensors of the
    CPU. Where the model is on the CPU, `device_ids` must be left out:

        ValueError: DistributedDataParallel device_ids and output_device arguments only work with
        single-device/multiple-device GPU modules or CPU modules, ...

    ## What to do

    `device_ids=[rank] if device.type == "cuda" else None`.
    """
    given = here.argument(node, "device_ids") if isinstance(node, ast.Call) else None
    if not isinstance(given, ast.List) or never_on_mps(here):
        return None
    return here.hit(
        given,
        "device_ids number CUDA devices, and no Mac has one",
        'Give device_ids only where device.type == "cuda".',
    )


RULES = (data_parallel, nccl, ddp_device_ids)
