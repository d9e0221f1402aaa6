"""How a condition sees the tensors of a call."""

from __future__ import annotations

from math import prod

from scanner.records import TensorSpec

__all__ = ["Operand"]

_SIZES = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "float16": 2,
    "bfloat16": 2,
    "int32": 4,
    "uint32": 4,
    "float32": 4,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
    "complex32": 4,
    "complex64": 8,
    "complex128": 16,
}


class Operand:
    """One tensor; strides and offset are in elements.

    `storage` is the position of the first tensor of the call that has the same storage.
    """

    def __init__(self, spec: TensorSpec, position: int = 0) -> None:
        self.dtype = spec.dtype
        self.shape = spec.shape
        self.stride = spec.stride
        self.offset = spec.offset
        self.layout = spec.layout
        self.on_cpu = spec.device == "cpu"
        self.storage = position if spec.alias is None else spec.alias

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return _SIZES.get(self.dtype, 1)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, each counted once for every place it is seen at."""
        return self.numel * self.itemsize

    @property
    def reach(self) -> int:
        """Elements of the storage from its start to behind the last one that is seen."""
        if self.numel == 0:
            return self.offset
        steps = zip(self.shape, self.stride, strict=False)
        return self.offset + 1 + sum((size - 1) * step for size, step in steps)

    @property
    def is_half(self) -> bool:
        """float16 or bfloat16."""
        return self.dtype in {"float16", "bfloat16"}

    @property
    def is_float(self) -> bool:
        """A real floating type."""
        return "float" in self.dtype

    @property
    def is_complex(self) -> bool:
        """A complex type."""
        return self.dtype.startswith("complex")

    @property
    def is_int(self) -> bool:
        """An integer type; bool is none."""
        return "int" in self.dtype

    @property
    def contiguous(self) -> bool:
        """Row major without gaps, as `Tensor.is_contiguous()`."""
        return self._dense(range(self.rank - 1, -1, -1))

    @property
    def channels_last(self) -> bool:
        """Channels innermost and not row major at the same time, for 4 and 5 dimensions."""
        order = {4: (1, 3, 2, 0), 5: (1, 4, 3, 2, 0)}.get(self.rank)
        return order is not None and self._dense(order) and not self.contiguous

    @property
    def transposed(self) -> bool:
        """The last two dimensions swapped, dense otherwise."""
        if self.rank < 2 or self.contiguous:
            return False
        last, before, *rest = range(self.rank - 1, -1, -1)
        return self._dense((before, last, *rest))

    @property
    def dense(self) -> bool:
        """No gaps and no overlap, in whatever order."""
        order = sorted(range(len(self.stride)), key=lambda dim: (self.stride[dim], self.shape[dim]))
        return self._dense(order)

    @property
    def expanded(self) -> bool:
        """A dimension above 1 has stride 0."""
        return any(
            step == 0 and size > 1 for step, size in zip(self.stride, self.shape, strict=False)
        )

    @property
    def innermost_stride(self) -> int:
        """Stride of the last dimension, 1 without dimensions."""
        return self.stride[-1] if self.stride else 1

    def _dense(self, order: range | tuple[int, ...] | list[int]) -> bool:
        """Whether strides grow without gaps along `order`, innermost first."""
        if self.layout != "strided":
            return False
        expected = 1
        for dim in order:
            if self.shape[dim] != 1:
                if self.stride[dim] != expected:
                    return self.numel == 0
                expected *= self.shape[dim]
        return True
