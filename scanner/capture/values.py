"""Numbers the storages that a step touches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from scanner.capture.describe import dtype_name
from scanner.records import Value

__all__ = ["Values"]


class Values:
    """Numbers storages in order of appearance.

    A weak reference is held to each, since an address is reused once nothing refers to it.
    """

    def __init__(self) -> None:
        self._index: dict[int, int] = {}
        self._references: list[Any] = []
        self._records: list[Value] = []

    def index(self, tensor: Tensor, role: str, name: str = "") -> int:
        """The number of the tensor's storage.

        `role` and `name` count when it is seen for the first time.
        """
        with torch._C.DisableTorchFunction():
            strided = tensor.layout == torch.strided
            storage = tensor.untyped_storage() if strided else None
            known = self._index.get(storage._cdata if storage is not None else id(tensor))
            if known is not None:
                return known
            about = {"role": role, "name": name, "dtype": dtype_name(tensor.dtype)}
            if storage is None:
                return self._new(id(tensor), tensor, nbytes=0, **about)
            reference = StorageWeakRef(storage)
            return self._new(storage._cdata, reference, nbytes=storage.nbytes(), **about)

    def _new(self, key: int, reference: Any, **about: Any) -> int:
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self._records)
            self._references.append(reference)
            self._records.append(Value(**about))
        return index

    def records(self) -> Iterator[Value]:
        """All storages, in order of their numbers."""
        yield from self._records
