"""TensorFlow on a Mac's GPU, that is with tensorflow-metal.

Which kernels that has was read from its wheels: docs/opdb.md says how.
"""

from __future__ import annotations

import ast
import re

from scanner.source.here import Here
from scanner.source.interface import Hit, source_rule
from scanner.source.rules.guards import never_on_mps
from scanner.source.rules.shared import is_true
from scanner.source.triggers import calls, methods, names

__all__ = ["RULES"]

_SECOND_GPU = re.compile(r"/?(?:device:)?GPU:0*[1-9]\d*", re.IGNORECASE)


@source_rule("OPS690", "tf-second-gpu", "error", since="0.1.0", on=[calls("tensorflow.device")])
def tf_second_gpu(node: ast.AST, here: Here) -> Hit | None:
    """A second GPU is named; TensorFlow sees one on a Mac, `/GPU:0`.

        InvalidArgumentError: Could not satisfy device specification '/device:GPU:1'

    ## What to do

    Write `/GPU:0`, or choose from `tf.config.list_logical_devices("GPU")`.
    """
    given = here.argument(node, "device_name", 0) if isinstance(node, ast.Call) else None
    if given is None or not _SECOND_GPU.fullmatch(here.string(given) or "") or here.conditions:
        return None
    return here.hit(
        given, f'"{here.string(given)}" is a second GPU, and a Mac has one', "Use GPU:0."
    )


_WIDE = ("tensorflow.float64", "tensorflow.double", "tensorflow.complex128")


@source_rule("OPS691", "tf-float64", "warning", since="0.1.0", on=[names(*_WIDE)])
def tf_float64(node: ast.AST, here: Here) -> Hit | None:
    """tensorflow-metal computes nothing in float64: these ops run on the CPU.

    None of its kernels takes float64, save the assignment of a variable. TensorFlow places the ops
    on the CPU and copies what they need, without a word.

    ## What to do

    Use `tf.float32`.
    """
    asks = any(isinstance(each, ast.Compare | ast.Dict) for each in here.path)
    if isinstance(node, ast.Name) or asks:
        return None
    wide = here.name.rpartition(".")[2]
    return here.hit(node, f"{wide} has no kernels in tensorflow-metal", "Use tf.float32.")


_FLOATX = (
    *("tensorflow.keras.backend.set_floatx", "tensorflow.keras.config.set_floatx"),
    *("keras.backend.set_floatx", "keras.config.set_floatx"),
)


@source_rule("OPS692", "keras-float64-by-default", "warning", since="0.1.0", on=[calls(*_FLOATX)])
def keras_float64(node: ast.AST, here: Here) -> Hit | None:
    """Every layer is made float64, which no Apple GPU computes.

    With tensorflow-metal the whole model then runs on the CPU; with torch as the backend it raises.

    ## What to do

    Keep "float32".
    """
    given = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if given is None or here.string(given) != "float64":
        return None
    return here.hit(node, "float64 layers do not run on an Apple GPU", 'Keep "float32".')


_STRATEGIES = ("MirroredStrategy", "MultiWorkerMirroredStrategy", "CentralStorageStrategy")


@source_rule(
    "OPS693",
    "tf-mirrored-strategy",
    "note",
    since="0.1.0",
    on=[
        calls(
            *(f"tensorflow.distribute.{name}" for name in _STRATEGIES),
            *(f"tensorflow.distribute.experimental.{name}" for name in _STRATEGIES),
        )
    ],
)
def tf_mirrored_strategy(node: ast.AST, here: Here) -> Hit | None:
    """A strategy mirrors variables over several GPUs, and a Mac has one.

    It adds collective ops to each step and spreads nothing.

    ## What to do

    `tf.distribute.get_strategy()` where there is one GPU:
    `if len(tf.config.list_physical_devices("GPU")) > 1:`.
    """
    if not isinstance(node, ast.Call) or node.args or here.conditions or never_on_mps(here):
        return None
    return here.hit(
        node,
        f"{here.name.rpartition('.')[2]} has nothing to mirror: a Mac has one GPU",
        "Use tf.distribute.get_strategy() where there is one GPU.",
    )


@source_rule(
    "OPS694",
    "tf-xla",
    "error",
    since="0.1.0",
    on=[calls("tensorflow.function"), methods("compile")],
    tokens=["jit_compile"],
)
def tf_xla(node: ast.AST, here: Here) -> Hit | None:
    """XLA is asked for, and has no compiler for Metal.

        UNIMPLEMENTED: Could not find compiler for platform METAL

    Keras turns its own `jit_compile="auto"` off on a Mac; `True` it believes.

    ## What to do

    Leave `jit_compile` out.
    """
    given = here.argument(node, "jit_compile") if isinstance(node, ast.Call) else None
    if given is None or not is_true(given) or never_on_mps(here):
        return None
    if "tensorflow" not in here.module.text:
        return None
    return here.hit(
        given,
        "jit_compile=True fails with tensorflow-metal, for which XLA has no compiler",
        "Leave jit_compile out.",
        links=("https://github.com/NVlabs/sionna/issues/78",),
    )


@source_rule(
    "OPS695",
    "keras-legacy-optimizer",
    "warning",
    since="0.1.0",
    on=[
        calls(
            "tensorflow.keras.optimizers.legacy.*",
            "keras.optimizers.legacy.*",
        )
    ],
    tokens=["legacy"],
)
def keras_legacy_optimizer(node: ast.AST, here: Here) -> Hit | None:
    """The legacy optimizers, once advised for Macs, are gone from Keras 3.

        ImportError: `keras.optimizers.legacy` is not supported in Keras 3.

    Keras 3 comes with TensorFlow from 2.16 on.

    ## What to do

    Use `keras.optimizers.Adam`; or stay with TensorFlow 2.15 and its Keras 2.
    """
    if here.conditions or never_on_mps(here):
        return None
    return here.hit(
        node,
        f"{here.name} raises in Keras 3, that is from TensorFlow 2.16 on",
        "Use the optimizer without .legacy.",
    )


_POLICIES = (
    *("tensorflow.keras.mixed_precision.set_global_policy", "keras.config.set_dtype_policy"),
    *("keras.mixed_precision.set_global_policy", "tensorflow.keras.mixed_precision.Policy"),
)


@source_rule("OPS696", "keras-mixed-float16", "note", since="0.1.0", on=[calls(*_POLICIES)])
def keras_mixed_float16(node: ast.AST, here: Here) -> Hit | None:
    """`mixed_float16` adds ops to each step that tensorflow-metal leaves to the CPU.

    The loss is scaled, and each gradient looked at for infinities: `IsFinite` and `All` have no
    Metal kernel, so every step waits for the CPU once a variable.

    ## What to do

    `mixed_bfloat16` needs no scaling. Measure both against float32.
    """
    given = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if given is None or here.string(given) != "mixed_float16" or never_on_mps(here):
        return None
    return here.hit(
        node,
        "mixed_float16 checks every gradient on the CPU with tensorflow-metal",
        'Try "mixed_bfloat16", and measure.',
    )


@source_rule(
    "OPS697",
    "tf-built-with-cuda",
    "warning",
    since="0.1.0",
    on=[calls("tensorflow.test.is_built_with_cuda")],
)
def tf_built_with_cuda(node: ast.AST, here: Here) -> Hit | None:
    """A GPU is looked for by asking for CUDA, which no Mac's TensorFlow is built with.

    The answer is False although the GPU is there.

    ## What to do

    `bool(tf.config.list_physical_devices("GPU"))`.
    """
    if _on_purpose(here):
        return None
    return here.hit(
        node,
        f"{here.name}() is False on every Mac",
        'Ask tf.config.list_physical_devices("GPU").',
    )


def _on_purpose(here: Here) -> bool:
    """Whether a name around says that it is CUDA that is asked for."""
    target = here.module.source(here.statement).lower()
    return target.startswith(("print", "cuda")) or never_on_mps(here)


RULES = (
    tf_second_gpu,
    tf_float64,
    keras_float64,
    tf_mirrored_strategy,
    tf_xla,
    keras_legacy_optimizer,
    keras_mixed_float16,
    tf_built_with_cuda,
)
