"""What kind of argument follows a part of a selector.

Integers and objects need no entry: they are told apart by their value.
From the headers of MetalPerformanceShaders and MetalPerformanceShadersGraph.
"""

from __future__ import annotations

__all__ = ["LAYOUT", "argument_kind", "output_count", "parts", "property_kind"]

_DTYPE = frozenset({"dataType", "toType", "distributionDataType", "returnIndicesDataType"})
_DOUBLE = frozenset(
    {"rate", "onValue", "offValue", "constantValue", "alpha", "constantWithScalar", "beta"}
)
_FLOAT = frozenset({"epsilon"})
_BOOL = frozenset(
    {
        "alignCorners",
        "bidirectional",
        "ceilMode",
        "centerResult",
        "descending",
        "exclusive",
        "fastMathEnabled",
        "forgetGateLast",
        "includeZeroPadToAverage",
        "interleave",
        "inverse",
        "lower",
        "normalizeCoordinates",
        "preferPackedRows",
        "produceCell",
        "relativeCoordinates",
        "reverse",
        "right",
        "roundToOddHermitean",
        "training",
        "transpose",
        "unit",
        "upper",
        "usePixelShuffleOrder",
        "aliasing",
    }
)
_U32 = frozenset({"startMask", "endMask", "squeezeMask"})
_INTEGER = frozenset(
    {
        "axis",
        "batchDimensions",
        "blockSize",
        "columns",
        "coordinateAlongAxis",
        "depth",
        "depthAxis",
        "dimension",
        "gatherAlongAxis",
        "heightAxis",
        "k",
        "layout",
        "length",
        "mode",
        "nearestRoundingMode",
        "numLower",
        "numSplits",
        "numUpper",
        "numberOfRightHandSides",
        "order",
        "paddingMode",
        "rows",
        "samplingMode",
        "scatterAlongAxis",
        "sourceCount",
        "start",
        "widthAxis",
        "withDimension",
        "withPaddingMode",
    }
)
"""Zero is a number here; elsewhere it is nil."""
LAYOUT = {"dtype": "u32", "integer": "word"}
"""Kinds that are stored like another one."""
_FLOAT_PROPERTIES = frozenset({"min", "max", "mean", "standardDeviation"})
_PAIRS = (
    "maxPooling2DReturnIndices",
    "maxPooling4DReturnIndices",
    "randomTensorWithShape",
    "randomUniformTensorWithShape",
    "topKWithSourceTensor",
    "bottomKWithSourceTensor",
)
_LSTM_OPERANDS = ("inputWeight", "bias", "initState", "initCell", "peephole")
"""Optional ones that have a gradient when they are given."""


def parts(selector: str) -> list[str]:
    """Keyword parts of a selector; none when it takes no argument."""
    return selector.split(":")[:-1]


def argument_kind(part: str) -> str:
    """Kind of a method's argument: word, integer, bool, u32, dtype, float, double."""
    for kind, members in (
        ("dtype", _DTYPE),
        ("bool", _BOOL),
        ("u32", _U32),
        ("double", _DOUBLE),
        ("float", _FLOAT),
        ("integer", _INTEGER),
    ):
        if part in members:
            return kind
    return "word"


def property_kind(name: str) -> str:
    """Kind of a descriptor's property."""
    return "float" if name in _FLOAT_PROPERTIES else argument_kind(name)


def output_count(selector: str, arguments: dict[str, object]) -> int:
    """How many tensors a graph method returns in an array; 0 when it returns one tensor.

    `arguments` are its arguments by part; descriptors as mappings of their properties.
    """
    if selector.startswith(_PAIRS):
        return 2
    if selector.startswith("splitTensor:numSplits:"):
        return _integer(arguments["numSplits"])
    if selector.startswith("splitTensor:splitSizes:"):
        sizes = arguments["splitSizes"]
        return len(sizes) if isinstance(sizes, tuple) else 1
    if selector.startswith("LSTMGradients"):
        return 2 + sum(arguments.get(part) is not None for part in _LSTM_OPERANDS)
    if selector.startswith("LSTMWith"):
        descriptor = arguments["descriptor"]
        assert isinstance(descriptor, dict)
        return 1 + bool(descriptor.get("produceCell")) + bool(descriptor.get("training"))
    return 0


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 1
