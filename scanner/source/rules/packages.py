"""Packages that need CUDA. Which have wheels for macOS was looked up on PyPI in 2026-11."""

from __future__ import annotations

import ast

from scanner.source.here import Here
from scanner.source.interface import Hit, source_rule
from scanner.source.rules.shared import tested, word_in_file
from scanner.source.triggers import imports

__all__ = ["RULES"]


def _unguarded(here: Here) -> bool:
    """Imported whenever the file is: no test, no `try`, no function around."""
    return here.at_module_level and not tested(here) and not _is_repeated(here)


def _is_repeated(here: Here) -> bool:
    """Whether the statement before is told already: `import triton`, `import triton.language`."""
    for statement in here.module.tree.body:
        if statement is here.statement:
            return False
        match statement:
            case ast.Import(names=aliases):
                found = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str() as name, level=0):
                found = [name]
            case _:
                continue
        if any(name.partition(".")[0] == _top(here) for name in found):
            return True
    return False


def _top(here: Here) -> str:
    return here.name.partition(".")[0]


_ATTENTION = ("flash_attn", "flash_attn_interface", "flash_attn_2_cuda", "sageattention")


@source_rule("OPS655", "flash-attn-import", "error", since="0.1.0", on=[imports(*_ATTENTION)])
def flash_attn_import(node: ast.AST, here: Here) -> Hit | None:
    """FlashAttention's package is imported without looking whether it is there.

    It is made of CUDA kernels, and had no wheel for macOS on PyPI in 2026-11: where it is not
    installed, the import ends the program.

    ## What to do

    Import it inside `try`, or where it is used, and fall back on
    `torch.nn.functional.scaled_dot_product_attention`, which computes the same.
    """
    if not _unguarded(here):
        return None
    return here.hit(
        node,
        f"{_top(here)} needs CUDA; on a Mac this import fails, or what is imported does",
        "Import it inside try, and fall back on scaled_dot_product_attention.",
    )


@source_rule("OPS656", "xformers-import", "warning", since="0.1.0", on=[imports("xformers")])
def xformers_import(node: ast.AST, here: Here) -> Hit | None:
    """xformers is imported without looking whether it is there; its kernels are CUDA's.

    It must be built from source on a Mac, and then has no kernels for MPS:
    `memory_efficient_attention` raises NotImplementedError there.

    ## What to do

    Import it inside `try`, and use `torch.nn.functional.scaled_dot_product_attention` on a Mac.
    """
    if not _unguarded(here):
        return None
    return here.hit(
        node,
        "xformers has no kernels for MPS",
        "Import it inside try, and fall back on scaled_dot_product_attention.",
    )


@source_rule("OPS657", "triton-import", "error", since="0.1.0", on=[imports("triton")])
def triton_import(node: ast.AST, here: Here) -> Hit | None:
    """Triton is imported without looking whether it is there.

    Triton had no wheel for macOS on PyPI in 2026-11, and has no code generator for Metal: where it
    is not installed, the import ends the program.

    ## What to do

    Import it inside `try`, and keep a version of the kernel that is written with torch. Metal
    shaders of one's own run by `torch.mps.compile_shader`, from torch 2.7.
    """
    if not _unguarded(here):
        return None
    return here.hit(
        node,
        "Triton has no wheel for macOS; where it is missing, this import ends the program",
        "Import it inside try, and keep a version that is written with torch.",
    )


_CUDA_PACKAGES = (
    *("cupy", "pycuda", "tensorrt", "torch_tensorrt", "transformer_engine", "nvidia.dali"),
    *("cudf", "cuml", "amp_C", "apex", "tensorrt_llm", "mamba_ssm", "causal_conv1d"),
)


@source_rule("OPS658", "cuda-package-import", "error", since="0.1.0", on=[imports(*_CUDA_PACKAGES)])
def cuda_package_import(node: ast.AST, here: Here) -> Hit | None:
    """A package that needs CUDA is imported without looking whether it is there.

    apex, cupy, pycuda, tensorrt, transformer_engine, DALI, RAPIDS, mamba_ssm: what they do is done
    by CUDA. PyPI had no wheel of theirs for macOS in 2026-11 but those of pure Python, such as
    transformer_engine's, which can be installed and cannot work there. What is not installed ends
    the program.

    ## What to do

    Import it inside `try`, or where it is used and CUDA is there. Much of apex is in torch by now:
    `torch.amp`, `torch.nn.parallel.DistributedDataParallel`, fused optimizers.
    """
    if not _unguarded(here):
        return None
    return here.hit(
        node,
        f"{_top(here)} needs CUDA; on a Mac this import fails, or what is imported does",
        "Import it inside try, or where CUDA is known to be there.",
    )


@source_rule("OPS659", "bitsandbytes-import", "note", since="0.1.0", on=[imports("bitsandbytes")])
def bitsandbytes_import(node: ast.AST, here: Here) -> Hit | None:
    """bitsandbytes is imported without looking whether it is there; most of it is CUDA's.

    Release 0.50 has a wheel for macOS, with 4-bit layers and block-wise quantization for MPS, and
    without its 8-bit optimizers there. Older ones are of little use on a Mac.

    ## What to do

    Import it inside `try`. On a Mac use an optimizer of torch's, and test quantized layers.
    """
    if not _unguarded(here) or word_in_file(here, "bnb_available", "bitsandbytes_available"):
        return None
    return here.hit(
        node,
        "most of bitsandbytes needs CUDA",
        "Import it inside try; use an optimizer of torch's on a Mac.",
    )


RULES = (
    flash_attn_import,
    xformers_import,
    triton_import,
    cuda_package_import,
    bitsandbytes_import,
)
