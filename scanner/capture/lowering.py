"""Where MPS dispatches another op than the one other backends see: names, and pure rewrites.

Two kinds of difference exist (seen in each release's native_functions.yaml and in the branches on
the device type that its binary takes):

- A composite op with an MPS kernel of its own, or one whose C++ body takes another branch on MPS.
  Those are reproduced *while* capturing (`holds.py`), so that autograd takes MPS' formulas too.
- `convolution` and its backward, which pick the MPS kernel below the dispatcher. Those are
  rewritten here, after capturing.

A release keeps an op whole only if it registers a kernel for it; which of `HOLDABLE` it keeps is
its lowering profile. This module imports no torch.
"""

from __future__ import annotations

from typing import Any

import msgspec

from scanner.records import OpCall, TensorSpec

__all__ = [
    "BRANCHES",
    "BRANCHES_BEFORE_MACOS_15",
    "CPU_ONLY",
    "DENSE_ATTENTION",
    "DROPOUT",
    "EMPTY_NORM",
    "FALLBACKS",
    "FLOAT_TOLERANCE",
    "HOLDABLE",
    "ONE_HOT",
    "SAFE_SOFTMAX",
    "lower",
]

HOLDABLE = frozenset(
    {
        "aten::_fused_rms_norm",
        "aten::_lstm_mps",
        "aten::_mps_convolution",
        "aten::_scaled_dot_product_attention_math_for_mps",
        "aten::linalg_lu_factor",
        "aten::linear",
        "aten::max_pool2d",
        "aten::mish_backward",
    }
)
"""Ops whose presence on MPS changes what is dispatched."""

FALLBACKS = frozenset({"aten::linalg_svd", "aten::upsample_nearest3d.vec"})
"""Composite ops that some releases register a CPU fallback for: they run whole, on the CPU."""

DROPOUT = "branch::native_dropout"
EMPTY_NORM = "branch::empty_batch_norm"
FLOAT_TOLERANCE = "branch::float32_tolerance"
DENSE_ATTENTION = "branch::attention_of_dense_tensors"
ONE_HOT = "branch::one_hot_unchecked"
SAFE_SOFTMAX = "branch::safe_softmax"
BRANCHES: dict[str, tuple[str, str]] = {
    DENSE_ATTENTION: ("2.5.0", "2.5.1"),
    DROPOUT: ("2.15.0", ""),
    EMPTY_NORM: ("2.5.0", ""),
    FLOAT_TOLERANCE: ("2.4.1", ""),
    ONE_HOT: ("", "2.11.0"),
    SAFE_SOFTMAX: ("2.5.0", ""),
}
"""Branches that no registration tells of: first and last release that takes them (empty: open).

From the calls and comparisons in each release's `dropout`, `one_hot` and attention functions:
dropout is one op on MPS; pseudo-inverse and rank make their tolerances in float32, since MPS has no
float64, and batch norm of nothing its statistics; `one_hot` does not check its indices; attention
guards its softmax, and leaves tensors that are not contiguous to the composite.
"""
BRANCHES_BEFORE_MACOS_15: dict[str, tuple[str, str]] = {DENSE_ATTENTION: ("2.6.0", "2.11.0")}
"""Likewise, where the release asks for the system. Executed with the releases' own code."""

CPU_ONLY = ("mkldnn", "onednn", "_for_cpu", "xnnpack", "nnpack")
"""Parts of op names that exist for the CPU alone and so say nothing about MPS."""


def lower(call: OpCall, holds: frozenset[str]) -> OpCall:
    """The call as a release that keeps `holds` dispatches it; the same object when unchanged."""
    if call.op == "aten::_safe_softmax" and SAFE_SOFTMAX not in holds:
        return _plain_softmax(call)
    if "aten::_mps_convolution" not in holds:
        return call
    if call.op in {"aten::convolution", "aten::_convolution"}:
        return _convolution(call)
    if call.op == "aten::convolution_backward":
        return _convolution_backward(call)
    return call


def _plain_softmax(call: OpCall) -> OpCall:
    attributes = {"dim": call.attributes["dim"], "half_to_float": False}
    return msgspec.structs.replace(call, op="aten::_softmax", via=call.op, attributes=attributes)


def _convolution(call: OpCall) -> OpCall:
    """Both kernels take what the composite was given; only the transposed one has no bias."""
    transposed = call.attributes["transposed"]
    inputs = {"input": "self", "weight": "weight"} | ({} if transposed else {"bias": "bias"})
    op = "aten::_mps_convolution_transpose" if transposed else "aten::_mps_convolution"
    return _rewritten(call, op, inputs, transposed)


def _convolution_backward(call: OpCall) -> OpCall:
    """`mps_convolution_backward(self, grad_output, weight, …)`: input first, gradient second."""
    transposed = call.attributes["transposed"]
    op = (
        "aten::mps_convolution_transpose_backward"
        if transposed
        else "aten::mps_convolution_backward"
    )
    inputs = {"input": "self", "grad_output": "grad_output", "weight": "weight"}
    lowered = _rewritten(call, op, inputs, transposed)
    mask = call.attributes["output_mask"]
    attributes = lowered.attributes | {"output_mask": mask[:2] if transposed else mask}
    return msgspec.structs.replace(lowered, attributes=attributes)


def _rewritten(call: OpCall, op: str, names: dict[str, str], transposed: bool) -> OpCall:
    specs = {spec.name: spec for spec in call.inputs}
    flat = len(specs["input"].shape) == 3
    inputs = tuple(
        _renamed(_view_4d(specs[old]) if flat and old != "bias" else specs[old], new)
        for old, new in names.items()
        if old in specs
    )
    outputs = tuple(
        _view_4d(spec) if flat and len(spec.shape) == 3 else spec for spec in call.outputs
    )
    attributes = _geometry(call.attributes, flat=flat, transposed=transposed)
    return msgspec.structs.replace(
        call,
        op=op,
        via=call.op,
        inputs=_realiased(call.inputs, inputs, names),
        outputs=outputs,
        attributes=attributes,
        values={names[old]: values for old, values in call.values.items() if old in names},
    )


def _geometry(attributes: dict[str, Any], *, flat: bool, transposed: bool) -> dict[str, Any]:
    """Padding, stride, dilation and groups; a 1-d convolution runs as a 2-d one of height 1."""
    lead = {"padding": 0, "output_padding": 0, "stride": 1, "dilation": 1}
    names = ["padding", "stride", "dilation"] + (["output_padding"] if transposed else [])
    geometry = {
        name: [lead[name], *attributes[name]] if flat else list(attributes[name]) for name in names
    }
    return geometry | {"groups": attributes["groups"]}


def _view_4d(spec: TensorSpec) -> TensorSpec:
    """`unsqueeze(2)`: the inserted axis has the stride of size × stride of the one behind it."""
    n, c, length = spec.shape
    sn, sc, sl = spec.stride
    return msgspec.structs.replace(spec, shape=(n, c, 1, length), stride=(sn, sc, length * sl, sl))


def _renamed(spec: TensorSpec, name: str) -> TensorSpec:
    return msgspec.structs.replace(spec, name=name)


def _realiased(
    old: tuple[TensorSpec, ...], new: tuple[TensorSpec, ...], names: dict[str, str]
) -> tuple[TensorSpec, ...]:
    """Aliases point at positions, and the positions have changed."""
    position = {spec.name: index for index, spec in enumerate(new)}
    moved = {index: position.get(names.get(spec.name, "")) for index, spec in enumerate(old)}

    def alias_of(index: int, spec: TensorSpec) -> int | None:
        target = moved.get(spec.alias) if spec.alias is not None else None
        return target if target is not None and target < index else None

    return tuple(
        msgspec.structs.replace(spec, alias=alias_of(index, spec)) for index, spec in enumerate(new)
    )
