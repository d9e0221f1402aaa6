"""Numbers the storages that a step touches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from scanner.records import Value

__all__ = ["Values"]


class Values:
    """Numbers storages in order of appearance.

    A weak reference is held to each, since an address is reused once nothing refers to it.
    """

    def __init__(self) -> None:
        self._index: dict[int, int] = {}
        self._references: list[Any] = []
        self._records: list[tuple[int, str]] = []

    def index(self, tensor: Tensor, role: str) -> int:
        """The number of the tensor's storage; `role` counts when it is seen for the first time."""
        with torch._C.DisableTorchFunction():
            if tensor.layout != torch.strided:
                return self._new(id(tensor), 0, role, tensor)
            storage = tensor.untyped_storage()
            known = self._index.get(storage._cdata)
            if known is not None:
                return known
            return self._new(storage._cdata, storage.nbytes(), role, StorageWeakRef(storage))

    def _new(self, key: int, nbytes: int, role: str, reference: Any) -> int:
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self._records)
            self._references.append(reference)
            self._records.append((nbytes, role))
        return index

    def records(self) -> Iterator[Value]:
        """All storages, in order of their numbers."""
        for nbytes, role in self._records:
            yield Value(nbytes=nbytes, role=role)
