"""Arguments of Lightning, transformers and accelerate that mean CUDA, or several devices.

Checked against pytorch-lightning 2.6.6, transformers 5.24.0 and accelerate 1.15.0.
"""

from __future__ import annotations

import ast
import re

from scanner.source.here import Here
from scanner.source.interface import Correction, Edit, Hit, source_rule
from scanner.source.rules.guards import never_on_mps
from scanner.source.rules.shared import added_argument, is_true
from scanner.source.triggers import calls

__all__ = ["RULES"]

_TRAINERS = (
    *("pytorch_lightning.Trainer", "lightning.Trainer", "lightning.pytorch.Trainer"),
    *("lightning.fabric.Fabric", "lightning.Fabric", "lightning_fabric.Fabric"),
)
_OPTIMIZERS = re.compile(r"(?:Paged)?(?:Ad|SGD|Lion|RMSprop|LAMB|LARS)")
_CHECKPOINT = re.compile(
    r"checkpoint|ckpt|weights?\b|pretrain|model|state_dict|\.pth", re.IGNORECASE
)
_OTHER_WORDS = re.compile(r"torch\.load|weights_only|\w*rng\w*")
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)
_ARGUMENTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")


@source_rule(
    "OPS682", "lightning-cuda", "error", since="0.1.0", on=[calls(*_TRAINERS)], fixes="unsafe"
)
def lightning_cuda(node: ast.AST, here: Here) -> Hit | None:
    """Lightning is told to use CUDA, and refuses on a Mac.

    `accelerator="gpu"` is CUDA or MPS, whichever is there; `"cuda"` is CUDA alone.

    ## What to do

    `accelerator="auto"`, or "gpu".
    """
    given = here.argument(node, "accelerator") if isinstance(node, ast.Call) else None
    if given is None or here.string(given) != "cuda" or never_on_mps(here):
        return None
    return here.hit(
        given,
        'accelerator="cuda" is refused on a Mac',
        'Write accelerator="auto".',
        correction=Correction(
            "Let Lightning choose", safe=False, edits=(Edit(here.module.span(given), '"auto"'),)
        )
        if isinstance(given, ast.Constant)
        else None,
    )


@source_rule("OPS683", "lightning-devices", "error", since="0.1.0", on=[calls(*_TRAINERS)])
def lightning_devices(node: ast.AST, here: Here) -> Hit | None:
    """Lightning is told to use several GPUs, or a strategy for several, and refuses on a Mac.

        ValueError: You set `strategy=ddp` but strategies from the DDP family are not supported on
        the MPS accelerator.
        MisconfigurationException: You requested gpu: [0, 1] But your machine only has: [0]

    ## What to do

    `devices="auto", strategy="auto"`.
    """
    if not isinstance(node, ast.Call) or never_on_mps(here):
        return None
    accelerator = here.argument(node, "accelerator")
    on_gpu = accelerator is None or here.string(accelerator) in ("gpu", "auto", "mps")
    strategy = here.argument(node, "strategy")
    named = here.string(strategy) or ""
    if strategy is not None and on_gpu and ("ddp" in named or "deepspeed" in named):
        return here.hit(strategy, f'strategy="{named}" is refused on MPS', 'Write "auto".')
    devices = here.argument(node, "devices")
    if devices is None or here.string(accelerator) not in ("gpu", "mps") or not _several(devices):
        return None
    text = here.module.source(devices)
    return here.hit(devices, f"devices={text}, and a Mac has one GPU", 'Write devices="auto".')


def _several(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=int() as number):
            return number > 1
        case ast.Constant(value=str() as text):
            return text.isdecimal() and text.lstrip("0") not in {"", "1"}
        case ast.List(elts=elements):
            return len(elements) > 1
    return False


_DOUBLE = (64, "64", "64-true")


@source_rule("OPS684", "lightning-double", "error", since="0.1.0", on=[calls(*_TRAINERS)])
def lightning_double(node: ast.AST, here: Here) -> Hit | None:
    """Lightning is told to train in float64, which MPS does not have.

    The model's parameters are converted when training begins, and the first one raises TypeError.

    ## What to do

    `precision="32-true"`, or `accelerator="cpu"` where double precision is needed.
    """
    if not isinstance(node, ast.Call) or never_on_mps(here):
        return None
    given = here.argument(node, "precision")
    value = None if given is None else here.value(given)
    if given is None or not isinstance(value, ast.Constant) or value.value not in _DOUBLE:
        return None
    if here.string(here.argument(node, "accelerator")) == "cpu":
        return None
    return here.hit(given, "MPS has no float64", 'Write precision="32-true", or accelerator="cpu".')


@source_rule(
    "OPS685", "trainer-tf32", "error", since="0.1.0", on=[calls(*_ARGUMENTS)], fixes="unsafe"
)
def trainer_tf32(node: ast.AST, here: Here) -> Hit | None:
    """`TrainingArguments(tf32=True)` is refused where there is no CUDA.

        ValueError: --tf32 requires Ampere or a newer GPU arch, cuda>=11 and torch>=1.7

    ## What to do

    Leave it out; or `tf32=torch.cuda.is_available()`.
    """
    given = here.argument(node, "tf32") if isinstance(node, ast.Call) else None
    if given is None or not is_true(given) or never_on_mps(here):
        return None
    return here.hit(
        given,
        "tf32=True raises on a Mac",
        "Write tf32=torch.cuda.is_available() or None.",
        correction=Correction(
            "Ask for TF32 where there is CUDA",
            safe=False,
            edits=(Edit(here.module.span(given), "torch.cuda.is_available() or None"),),
            imports=("import torch",),
        ),
    )


@source_rule("OPS686", "trainer-argument-gone", "warning", since="0.1.0", on=[calls(*_ARGUMENTS)])
def trainer_removed_argument(node: ast.AST, here: Here) -> Hit | None:
    """`use_mps_device` and `no_cuda` are gone from `TrainingArguments` in transformers 5.

    The trainer takes MPS by itself where it is there. `no_cuda` did not keep it off MPS by its name
    alone, and `use_cpu` is what took its place; passing either now is a TypeError.

    ## What to do

    Leave `use_mps_device` out. For the CPU write `use_cpu=True`.
    """
    if not isinstance(node, ast.Call):
        return None
    for keyword in node.keywords:
        if keyword.arg in ("use_mps_device", "no_cuda"):
            instead = "Leave it out." if keyword.arg == "use_mps_device" else "Write use_cpu."
            return here.hit(keyword.value, f"transformers 5 has no argument {keyword.arg}", instead)
    return None


@source_rule(
    "OPS687",
    "eight-bit-optimizer",
    "warning",
    since="0.1.0",
    on=[calls(*_ARGUMENTS, "bitsandbytes.optim.*")],
    tokens=["8bit", "bnb", "bitsandbytes"],
)
def eight_bit_optimizer(node: ast.AST, here: Here) -> Hit | None:
    """An optimizer of bitsandbytes is used, and none of them has kernels for MPS.

    bitsandbytes 0.50 has block-wise quantization and 4-bit layers for MPS, and no optimizer.

    ## What to do

    Use `torch.optim.AdamW`, or `optim="adamw_torch"`; `adafactor` saves memory everywhere.
    """
    if not isinstance(node, ast.Call) or never_on_mps(here):
        return None
    if here.name.startswith("bitsandbytes."):
        if not _OPTIMIZERS.match(here.name.rpartition(".")[2]):
            return None
        return here.hit(node, f"{here.name} has no kernels for MPS", "Use torch.optim.AdamW.")
    given = here.argument(node, "optim")
    named = here.string(given) or ""
    if given is None or not ("8bit" in named or "bnb" in named or "paged" in named):
        return None
    return here.hit(given, f'optim="{named}" has no kernels for MPS', 'Use "adamw_torch".')


@source_rule(
    "OPS688",
    "fp8-precision",
    "error",
    since="0.1.0",
    on=[calls("accelerate.Accelerator")],
    tokens=["fp8"],
)
def fp8_precision(node: ast.AST, here: Here) -> Hit | None:
    """8-bit floating point is asked for, which needs NVIDIA's newest GPUs.

    No Apple GPU computes in it, and MPS has no kernels for its dtypes.

    ## What to do

    `mixed_precision="bf16"` (torch 2.6) or `"no"`.
    """
    given = here.argument(node, "mixed_precision") if isinstance(node, ast.Call) else None
    if given is None or here.string(given) != "fp8" or never_on_mps(here):
        return None
    return here.hit(given, "no Mac computes in fp8", 'Use "bf16" or "no".')


@source_rule(
    "OPS689",
    "load-without-map-location",
    "note",
    since="0.1.0",
    on=[calls("torch.load")],
    fixes="unsafe",
)
def load_without_map_location(node: ast.AST, here: Here) -> Hit | None:
    """A file is loaded to where its tensors were saved, which may be a GPU that is not there.

        RuntimeError: Attempting to deserialize object on a CUDA device but
        torch.cuda.is_available() is False.

    It is a note: files that were saved from the CPU load anywhere. opscan reports what by its names
    are weights and checkpoints.

    ## What to do

    `torch.load(path, map_location="cpu")`, and move the model afterwards.
    """
    if not isinstance(node, ast.Call) or len(node.args) > 1 or never_on_mps(here):
        return None
    if any(keyword.arg in ("map_location", None) for keyword in node.keywords):
        return None
    named = [part for each in node.args for part in ast.walk(each) if isinstance(part, ast.expr)]
    if any("__file__" in here.module.source(here.value(each)) for each in named):
        return None  # it comes with the program
    statement = here.statement if isinstance(here.statement, _SIMPLE) else node
    if not _CHECKPOINT.search(_OTHER_WORDS.sub("", here.module.source(statement))):
        return None
    edits = added_argument(here, node, 'map_location="cpu"')
    return here.hit(
        node,
        "a checkpoint that was saved from CUDA does not load here on a Mac",
        'Give map_location="cpu".',
        correction=Correction('Add map_location="cpu"', safe=False, edits=edits) if edits else None,
    )


RULES = (
    lightning_cuda,
    lightning_devices,
    lightning_double,
    trainer_tf32,
    trainer_removed_argument,
    eight_bit_optimizer,
    fp8_precision,
    load_without_map_location,
)
