"""Fused, compiled and hand-made kernels that are CUDA's, or a later release's."""

from __future__ import annotations

import ast

from scanner.source.here import Here
from scanner.source.interface import Hit, source_rule
from scanner.source.rules.guards import never_on_mps
from scanner.source.rules.shared import before, is_true
from scanner.source.triggers import calls, nodes

__all__ = ["RULES"]

COMPILED_SINCE = (2, 7)
"""Release of torch whose inductor has a backend for MPS."""
FUSED_SINCE = (2, 5)
FUSED = {"Adam": "_fused_adam_", "AdamW": "_fused_adamw_", "SGD": "_fused_sgd_"}
"""Optimizers whose fused op has an MPS kernel since `FUSED_SINCE`."""
NEVER_FUSED = {"Adagrad": "_fused_adagrad_"}


@source_rule(
    "OPS645",
    "compile-without-backend",
    "warning",
    since="0.1.0",
    on=[calls("torch.compile")],
)
def compile_without_backend(node: ast.AST, here: Here) -> Hit | None:
    """`torch.compile` has no code generator for MPS in the targeted release.

    Inductor, its default backend, makes Metal code from torch 2.7 on. Before, compiling a model
    that is on MPS raises, or gains nothing. It is reported for the targets of the scan that are
    older.

    ## What to do

    Upgrade, compile only where `device.type == "cuda"`, or use `backend="aot_eager"`.
    """
    if not isinstance(node, ast.Call) or never_on_mps(here):
        return None
    backend = here.argument(node, "backend")
    disabled = is_true(here.argument(node, "disable"))
    if disabled or (backend is not None and here.string(backend) != "inductor"):
        return None
    if not (old := before(here, COMPILED_SINCE)):
        return None
    hit = here.hit(
        node,
        f"inductor has no backend for MPS in torch {', '.join(old)}",
        "Upgrade to torch 2.7, or compile for CUDA alone.",
    )
    return hit._replace(fixed_in="2.7.0")


@source_rule(
    "OPS646",
    "fused-optimizer",
    "error",
    since="0.1.0",
    on=[calls(*(f"torch.optim.{name}" for name in (*FUSED, *NEVER_FUSED)))],
    tokens=["fused"],
)
def fused_optimizer(node: ast.AST, here: Here) -> Hit | None:
    """An optimizer is to use its fused op, which MPS does not have in the targeted release.

        RuntimeError: `fused=True` requires all the params to be floating point Tensors of
        supported devices

    Adam, AdamW and SGD have fused kernels for MPS from torch 2.5; Adagrad has none up to 2.15.

    ## What to do

    Leave `fused` out: PyTorch chooses by itself.
    """
    if not isinstance(node, ast.Call) or not is_true(here.argument(node, "fused")):
        return None
    name = here.name.rpartition(".")[2]
    old = before(here, FUSED_SINCE)
    if never_on_mps(here) or (name in FUSED and not old):
        return None
    where = "in any release up to 2.15" if name in NEVER_FUSED else f"in torch {', '.join(old)}"
    return here.hit(node, f"{name} has no fused kernel for MPS {where}", "Leave fused=True out.")


@source_rule(
    "OPS647",
    "flash-attention-implementation",
    "warning",
    since="0.1.0",
    on=[nodes(ast.keyword)],
    tokens=["attn_implementation", "use_flash_attention_2"],
)
def flash_attention_implementation(node: ast.AST, here: Here) -> Hit | None:
    """A transformers model is to use FlashAttention, whose package is CUDA's.

        ImportError: FlashAttention2 has been toggled on, but it cannot be used due to the
        following error: the package for FlashAttention2 doesn't seem to be installed.

    No wheel of `flash-attn` exists for macOS.

    ## What to do

    `attn_implementation="sdpa"`: it works everywhere, and MPS has a kernel of its own for it.
    """
    if not isinstance(node, ast.keyword):
        return None
    named = node.arg == "attn_implementation" and (here.string(node.value) or "").startswith(
        "flash_attention_"
    )
    if not named and not (node.arg == "use_flash_attention_2" and is_true(node.value)):
        return None
    # Last, because they look at the whole function.
    if never_on_mps(here) or here.conditions:
        return None
    return here.hit(
        node.value,
        f"{here.module.source(node)} needs flash-attn, which needs CUDA",
        'Use attn_implementation="sdpa".',
    )


@source_rule(
    "OPS648",
    "cuda-attention-switch",
    "note",
    since="0.1.0",
    on=[
        calls(
            "torch.backends.cuda.sdp_kernel",
            "torch.backends.cuda.enable_flash_sdp",
            "torch.backends.cuda.enable_mem_efficient_sdp",
            "torch.backends.cuda.enable_math_sdp",
            "torch.backends.cuda.enable_cudnn_sdp",
        )
    ],
    tokens=["sdp"],
)
def cuda_attention_switch(node: ast.AST, here: Here) -> Hit | None:
    """Attention kernels of CUDA are switched on or off, which MPS takes no notice of.

    `scaled_dot_product_attention` on MPS has a kernel of its own. `torch.backends.cuda.sdp_kernel`
    is deprecated besides.

    ## What to do

    Nothing, if the switch is for speed. Where it is for exactness, test on the Mac.
    """
    if never_on_mps(here):
        return None
    return here.hit(
        node,
        f"{here.name}() has no effect on MPS, which has an attention kernel of its own",
        "Use torch.nn.attention.sdpa_kernel where it matters, for CUDA alone.",
    )


@source_rule(
    "OPS649",
    "nvfuser",
    "note",
    since="0.1.0",
    on=[
        calls(
            "torch.jit.fuser",
            "torch._C._jit_set_nvfuser_enabled",
        )
    ],
    tokens=["fuser"],
)
def nvfuser(node: ast.AST, here: Here) -> Hit | None:
    """A fuser of TorchScript is chosen that makes kernels for CUDA.

    `fuser2` is nvFuser, which newer releases have dropped for CUDA too: the call warns and does
    nothing.

    ## What to do

    Leave it out.
    """
    chosen = here.argument(node, "name", 0) if isinstance(node, ast.Call) else None
    if here.name == "torch.jit.fuser" and here.string(chosen) != "fuser2":
        return None
    if never_on_mps(here):
        return None
    return here.hit(node, f"{here.name}() is about CUDA kernels", "Leave it out.")


RULES = (
    compile_without_backend,
    fused_optimizer,
    flash_attention_implementation,
    cuda_attention_switch,
    nvfuser,
)
