"""How many products an element of a contraction is the sum of, about.

For a product C = A·B of two matrices it is √(|A|·|B| ÷ |C|), sizes in elements. The kernel of a
convolution counts once more by its root: it is in the sum and not in the sizes. For a plain sum it
is |A| ÷ |C|.
"""

from __future__ import annotations

from math import prod, sqrt

from scanner.records import OpCall

__all__ = ["terms"]


def terms(call: OpCall, elements: int) -> float:
    """Terms of each of `elements` numbers that are computed from the call's tensors; at least 1."""
    sizes = sorted(prod(spec.shape) for spec in (*call.inputs, *call.outputs))
    if elements in sizes and len(sizes) > 1:
        sizes.remove(elements)  # the result itself, or the input whose gradient it is
    if not elements or not sizes:
        return 1.0
    largest, second = sizes[-1], sizes[-2] if len(sizes) > 1 else 1
    return max(1.0, largest / elements, sqrt(largest * second * _kernel(call) / elements))


def _kernel(call: OpCall) -> int:
    """Elements of a convolution's kernel in one channel; 1 for other ops."""
    if "convolution" not in call.op:
        return 1
    weights = (spec.shape for spec in call.inputs if spec.name == "weight")
    return prod(next(weights, ())[2:])
