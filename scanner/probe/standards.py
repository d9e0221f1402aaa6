"""By which rule each op is judged, and how much error each rule allows.

The class of an op follows from its schema and tags where they tell (views, pointwise ops, seeded
randomness), else from the tables of `families`; an op that no table names is judged as a
contraction, the rule that allows most. `docs/comparison.md` derives the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch

from scanner.probe import families
from scanner.probe.schema import Schema
from scanner.records import OpCall

__all__ = [
    "Allowance",
    "Kind",
    "Standard",
    "dropout_rates",
    "gradient_standard",
    "loose_strides",
    "off_by_one",
    "private_outputs",
    "rounds",
    "standard_of",
    "unit",
]

Kind = Literal[
    "exact", "pointwise", "stepped", "contraction", "reduction", "linalg", "random", "undefined"
]
"""exact: every bit. stepped: pointwise with jumps, as of the floor of a quotient. undefined: no
values are promised."""


@dataclass(frozen=True)
class Allowance:
    """What is allowed on top of the factor, in units of the dtype's epsilon."""

    relative: float
    """Times the magnitude of the element itself."""
    scale: float
    """Times the root mean square of the whole output."""
    rmse: float
    """Root mean square of all errors, times the root mean square of the output."""


@dataclass(frozen=True)
class Standard:
    """How one op is judged."""

    kind: Kind
    factor: float = 3.0
    """How many times the CPU's own error a device may err."""
    single: Allowance = Allowance(16, 84, 32)
    """For float32 and complex64."""
    half: Allowance = Allowance(3.5, 2.5, 4)
    """For float16, of which 1 % is ten units."""
    brain: Allowance = Allowance(4, 4, 4)
    """For bfloat16 and narrower, of which 1 % is about one unit: there the gain test decides."""
    double: Allowance = Allowance(512, 4096, 2048)
    """For float64: there is no wider reference, so the CPU's error is not known."""

    @property
    def compares_values(self) -> bool:
        """False when only support and metadata can be judged."""
        return self.kind not in {"random", "undefined"}

    def allowance(self, dtype: torch.dtype) -> Allowance:
        """What the standard allows in a dtype."""
        epsilon = unit(dtype)
        if epsilon > 2.0**-10:
            return self.brain
        return self.half if epsilon == 2.0**-10 else self.single if epsilon > 1e-9 else self.double


EXACT = Standard("exact", factor=0.0)
POINTWISE = Standard(
    "pointwise",
    single=Allowance(16, 16, 32),
    half=Allowance(3.5, 1.5, 4),
    brain=Allowance(4, 2, 4),
    double=Allowance(512, 512, 2048),
)
STEPPED = replace(POINTWISE, kind="stepped")
CONTRACTION = Standard("contraction")
REDUCTION = Standard("reduction")
RECURSION = Standard("reduction", single=Allowance(64, 1024, 512))
LINALG = Standard(
    "linalg",
    factor=10.0,
    single=Allowance(64, 256, 128),
    half=Allowance(8, 8, 8),
    brain=Allowance(8, 8, 8),
)
RANDOM = Standard("random")
UNDEFINED = Standard("undefined")


def unit(dtype: torch.dtype) -> float:
    """Epsilon: the distance from one to the next larger number."""
    return torch.finfo(dtype).eps


_TRAINING_ONLY = {"native_batch_norm": "training", "_native_batch_norm_legit": "training"}


_WEIGHTED_LOSSES = frozenset({"nll_loss_forward", "nll_loss2d_forward"})
"""Their `total_weight` has a meaning only for the reductions that divide by it."""


_BOTH = {"1": "return_inverse", "2": "return_counts"}
_ON_REQUEST = {
    "_unique": {"1": "return_inverse"},
    **dict.fromkeys(("_unique2", "unique_dim"), _BOTH),
    **dict.fromkeys(("unique_consecutive", "unique_dim_consecutive"), _BOTH),
}
"""Outputs that only mean something when they were asked for; else some kernels leave them empty."""


def private_outputs(schema: Schema, call: OpCall) -> frozenset[str]:
    """Names of outputs that are not compared for this call."""
    flag = _TRAINING_ONLY.get(schema.family)
    if flag is not None and call.attributes.get(flag):
        return frozenset()
    if schema.family in _WEIGHTED_LOSSES and call.attributes.get("reduction") == 0:
        return frozenset({"1"})
    if schema.family in _ON_REQUEST:
        wanted = _ON_REQUEST[schema.family]
        return frozenset(name for name, asked in wanted.items() if not call.attributes.get(asked))
    return families.PRIVATE_OUTPUTS.get(schema.family, frozenset())


def standard_of(schema: Schema, call: OpCall) -> Standard:
    """The rule for one configuration."""
    if schema.family in families.UNDEFINED:
        return UNDEFINED
    if _is_random(schema, call):
        return RANDOM
    if _is_exact(schema, call):
        return EXACT
    if schema.family in families.STEPPED or call.attributes.get("rounding_mode") is not None:
        return STEPPED
    if schema.family in families.LINALG:
        return LINALG
    if schema.family in families.RECURSION:
        return RECURSION
    if "reduction" in schema.tags or schema.family in families.REDUCTION:
        return REDUCTION
    return POINTWISE if "pointwise" in schema.tags or schema.foreach else CONTRACTION


def gradient_standard(standard: Standard) -> Standard:
    """How an op's gradient is judged: it adds up where the op itself only copies.

    Where the op has a step its gradient has a jump, and either side is right.
    """
    if standard.kind == "stepped":
        return replace(CONTRACTION, kind="stepped")
    return standard if standard.kind in {"linalg", "reduction"} else CONTRACTION


def rounds(schema: Schema, call: OpCall) -> bool:
    """Whether a last-bit difference in a floating result is no fault."""
    return standard_of(schema, call).kind not in {"exact", "random", "undefined"}


_DROPOUT = ("dropout", "dropout_p")


def dropout_rates(schema: Schema, call: OpCall) -> tuple[str, ...]:
    """Arguments by which an op drops values among its other work, where they are not zero."""
    rates = tuple(name for name in _DROPOUT if call.attributes.get(name))
    return rates if rates and _is_random(schema, call) else ()


def _is_random(schema: Schema, call: OpCall) -> bool:
    seeded = "nondeterministic_seeded" in schema.tags or schema.family in families.RANDOM
    # A backward op has no tag, but its mask is its forward's, which no two devices share.
    return (seeded or any(name in call.attributes for name in _DROPOUT)) and _draws(call)


def _draws(call: OpCall) -> bool:
    """Dropout that is off, or drops nothing, leaves nothing to chance.

    Recurrent layers drop what they hand to the next one, so that a single one drops nothing.
    """
    given = call.attributes
    if "dropout" in given and given.get("num_layers") == 1:
        return False
    if given.get("train") is False or given.get("training") is False:
        return False
    rates = [given[name] for name in ("dropout_p", "dropout", "p") if name in given]
    return not (rates and "bernoulli" not in call.op and all(rate == 0 for rate in rates))


def _is_exact(schema: Schema, call: OpCall) -> bool:
    if schema.views or "view_copy" in schema.tags or "inplace_view" in schema.tags:
        return True
    if schema.family in {"scatter", "put", "index_put", "_index_put_impl", "_unsafe_index_put"}:
        return not call.attributes.get("accumulate") and call.attributes.get("reduce") is None
    if schema.family in {"copy", "_to_copy", "to"}:
        return not _converts(call)
    if schema.family in {"abs", "absolute", "sgn"}:
        return not any("complex" in spec.dtype for spec in call.inputs)
    if schema.family == "round":
        return not call.attributes.get("decimals")
    return schema.family in families.EXACT


def _converts(call: OpCall) -> bool:
    """Whether a copy changes the dtype, and so may round."""
    dtypes = {spec.dtype for spec in call.inputs}
    given = call.attributes.get("dtype")
    return len(dtypes | ({given} if given else set())) > 1


def loose_strides(schema: Schema) -> bool:
    """Whether backends may choose the order of dimensions of the outputs."""
    return schema.family in families.LOOSE_STRIDES and not schema.views


def off_by_one(schema: Schema) -> bool:
    """Whether whole-number results are rounded from computed steps, and so may differ by one."""
    return schema.family in {"linspace", "logspace", "range"}
