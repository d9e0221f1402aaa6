"""Guards: where no Mac's GPU comes, as far as the source shows."""

from __future__ import annotations

import ast
import re
from itertools import pairwise

from scanner.source.conditions import denies
from scanner.source.here import Here
from scanner.source.rules.shared import tried

__all__ = ["CUDA_ALONE", "cuda_by_design", "never_on_mps"]

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
CUDA_ALONE = frozenset(
    [
        *("cupy", "pycuda", "tensorrt", "torch_tensorrt", "transformer_engine", "cudf", "cuml"),
        *("amp_C", "apex", "tensorrt_llm", "mamba_ssm", "causal_conv1d", "triton"),
        *("flash_attn", "flash_attn_interface", "flash_attn_2_cuda"),
    ]
)
"""Modules that are not installed on a Mac, or do nothing there."""
_DESIGNED = re.compile(
    r"cuda|cudnn|ampere|nccl|nvtx|fsdp|fully_?sharded|tensorrt|triton|deepspeed|megatron"
    r"|transformer_?engine|multi_gpu|mgpu"
    r"|(?<![a-z])(?:xpu|npu|hpu|mlu|xla|tpu|rocm|hip|musa|sdaa)"
)
"""What the names say of code that no Mac's GPU comes to. The last ones are parts of other words."""


def cuda_by_design(here: Here) -> bool:
    """Whether a function, class or decorator around says that this is for CUDA: `require_cuda`.

    So does a function that skips itself without CUDA, and a file that cannot even be imported on a
    Mac; the rules about imports have said it then.
    """
    for node in here.path:
        if isinstance(node, _SCOPES) and (here.once(_is_named_so, node) or here.once(_skips, node)):
            return True
    return here.once(_is_of_cuda, here.module.tree)


def _is_of_cuda(module: ast.Module, here: Here) -> bool:
    return any(
        _imports_cuda(statement) or _marks(statement, here) or _is_for_megatron(statement)
        for statement in module.body
    )


_FRAMEWORKS = re.compile(r"deepspeed|megatron|tensorrt|nccl|transformer engine")


def _is_named_so(node: _Scope, here: Here) -> bool:
    decorators = " ".join(here.module.source(each) for each in node.decorator_list).lower()
    return bool(_DESIGNED.search(node.name.lower()) or _DESIGNED.search(decorators)) or (
        "gpu" in decorators
    )


def _skips(node: _Scope, here: Here) -> bool:
    """A test that says at its beginning that it needs CUDA; the docstring may say for what."""
    told = (ast.get_docstring(node) or "").partition("\n")[0].lower()
    if _FRAMEWORKS.search(told):
        return True
    if isinstance(node, ast.ClassDef) or not node.name.startswith("test"):
        return False
    tests = [each for each in node.body if isinstance(each, ast.If)]
    said = (here.module.source(each).lower() for each in tests)
    return any("skip" in text and "cuda" in text for text in said)


def _marks(statement: ast.stmt, here: Here) -> bool:
    """`pytestmark = pytest.mark.skipif(not torch.cuda.is_available())`."""
    match statement:
        case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
            return "cuda" in here.module.source(value).lower()
    return False


def _is_for_megatron(statement: ast.stmt) -> bool:
    """`if is_megatron_lm_available(): from megatron.core import ...`."""
    inner = statement.body if isinstance(statement, ast.If | ast.Try) else [statement]
    return any(
        isinstance(each, ast.ImportFrom) and (each.module or "").partition(".")[0] == "megatron"
        for each in inner
    )


def _imports_cuda(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import(names=aliases):
            found = [alias.name for alias in aliases]
        case ast.ImportFrom(module=str() as name, level=0):
            found = [name]
        case _:
            return False
    return any(name.partition(".")[0] in CUDA_ALONE for name in found)


def never_on_mps(here: Here) -> bool:
    """Whether a Mac's GPU does not come here: CUDA was tested, or MPS ruled out, or it is caught.

    `else` of `if device.type == "mps"`, `def to_cuda`, `@require_cuda`, `try: ... except: ...`.
    """
    if here.only_on_cuda or tried(here) or cuda_by_design(here) or _counted(here):
        return True
    function = here.function
    if function and (here.once(_builds_engine, function) or here.once(_refuses_others, function)):
        return True
    if _is_in_stream(here):
        return True
    for test, holds in here.conditions:
        said = (here.module.source(test) + here.module.source(here.value(test))).lower()
        ruled_out = "mps" in said and (not holds or "!=" in said or "not " in said)
        if (
            ruled_out
            or (not holds and "accelerator" in said)
            or (holds and _is_cpu_test(test))
            or (holds is not denies(test) and _DESIGNED.search(said))
        ):
            return True
    return False


def _is_in_stream(here: Here) -> bool:
    """`with torch.cuda.stream(side):` and its like, which are CUDA's."""
    return any(
        isinstance(parent, ast.With)
        and child in parent.body
        and any(getattr(_called(each), "attr", "") == "stream" for each in parent.items)
        for parent, child in pairwise(here.path)
    )


def _called(item: ast.withitem) -> ast.AST:
    return item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr


def _builds_engine(function: ast.AST, here: Here) -> bool:  # noqa: ARG001 - asked `once`
    """Whether the function speaks of TensorRT: `trt.Builder(logger)`."""
    return any(
        (isinstance(each, ast.Name) and each.id in _ENGINES)
        or (isinstance(each, ast.Attribute) and each.attr in _ENGINES)
        for each in ast.walk(function)
    )


def _refuses_others(function: ast.AST, here: Here) -> bool:
    """`if device.type != "cuda": raise` somewhere in the function, or `-> torch.cuda.Event`."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    if function.returns is not None and "cuda" in here.module.source(function.returns).lower():
        return True
    guards = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.If) and isinstance(each.body[-1], ast.Raise) and denies(each.test)
    ]
    return any(
        isinstance(part, ast.Constant) and part.value == "cuda"
        for each in guards
        for part in ast.walk(each.test)
    )


_ENGINES = frozenset({"trt", "tensorrt", "torch_tensorrt", "tensorrt_llm"})


def _is_cpu_test(test: ast.expr) -> bool:
    """`device.type == "cpu"`."""
    match test:
        case ast.Compare(ops=[ast.Eq()], comparators=[ast.Constant(value="cpu")]):
            return True
    return False


_COUNTS = re.compile(r"cuda\.(?:device_count|is_available)|is_cuda")


def _counted(here: Here) -> bool:
    """`for gpu in range(torch.cuda.device_count())`, and what follows an `assert` about CUDA."""
    for parent, child in pairwise(here.path):
        if isinstance(parent, ast.For) and child in parent.body and _counts(parent.iter, here):
            return True
        asserts = here.once(_asserts_of, parent)
        if asserts and child in parent.body:  # type: ignore[attr-defined]
            line: int = getattr(child, "lineno", 0)
            if any(each.lineno < line for each in asserts):
                return True
    return any(holds and _counts(test, here) for test, holds in here.conditions)


def _asserts_of(parent: ast.AST, here: Here) -> list[ast.stmt]:
    """Statements of a block that end it without CUDA."""
    block = getattr(parent, "body", None)
    return [each for each in block if _asserts(each, here)] if isinstance(block, list) else []


def _asserts(statement: ast.AST, here: Here) -> bool:
    """`assert x.is_cuda`, `assert "cuda" in str(x.device)`."""
    if not isinstance(statement, ast.Assert):
        return False
    said = here.module.source(statement.test).lower()
    return ("cuda" in said and "mps" not in said) or _counts(statement.test, here)


def _counts(node: ast.expr, here: Here) -> bool:
    named = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    said = [here.module.source(node), *(here.module.source(here.value(each)) for each in named)]
    return any(_COUNTS.search(text) for text in said)
