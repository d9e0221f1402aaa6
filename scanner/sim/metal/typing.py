"""Element types of graph tensors, as far as host code asks for them before a graph runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scanner.sim.graph.recording import Descriptor, Op

__all__ = ["element_type"]

_BOOL = (
    "equal",
    "notEqual",
    "lessThan",
    "greaterThan",
    "isNaN",
    "isInfinite",
    "isFinite",
    "logical",
    "notWith",
    "signbit",
    "reductionAnd",
    "reductionOr",
)
_INDEX = ("reductionArg", "argSort", "nonZeroIndices", "shapeOf", "coordinateAlongAxis")
_INDEX_SECOND = ("topK", "bottomK", "maxPooling2DReturnIndices", "maxPooling4DReturnIndices")
_REAL = ("realPart", "imaginaryPart", "HermiteanToReal")
_COMPLEX = ("realToHermitean", "complexTensor")
_TO_COMPLEX = {"float32": "complex64", "float16": "complex32"}
_TO_REAL = {value: key for key, value in _TO_COMPLEX.items()}


def element_type(op: Op, value: int, known: Callable[[int], str]) -> str:
    """Torch's name of an output's type; `known` gives the types of operands."""
    parts = {argument.part: argument.value for argument in op.arguments}
    declared = _declared(parts)
    if declared:
        return declared
    selector = op.selector
    if selector.startswith(_BOOL):
        return "bool"
    if selector.startswith(_INDEX):
        return "int32"
    if selector.startswith(_INDEX_SECOND) and value == op.outputs[-1]:
        return "int32"
    operand = known(op.inputs[-1 if selector.startswith("select") else 0]) if op.inputs else ""
    if selector.startswith(_REAL):
        return _TO_REAL.get(operand, operand)
    if selector.startswith(_COMPLEX):
        return _TO_COMPLEX.get(operand, operand)
    return operand


def _declared(parts: Mapping[str, object]) -> str:
    for part in ("toType", "dataType"):
        if isinstance(parts.get(part), str):
            return str(parts[part])
    descriptor = parts.get("descriptor")
    if isinstance(descriptor, Descriptor) and "dataType" in descriptor.properties:
        return str(descriptor.properties["dataType"])
    return ""
