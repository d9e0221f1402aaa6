"""What composite kernels call, for the arguments that they are given.

A kernel for all backends may call another op for other arguments: `linalg_pinv` takes `linalg_eigh`
if its matrix is hermitian, else a singular value decomposition. The kernels that matter, because
something that they may call is missing on MPS in some release, are run call by call.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from opdb import query
from opdb.closure import MORE
from scanner.capture import describe

__all__ = ["Inside"]

_KEYS = (
    torch._C.DispatchKey.CompositeExplicitAutogradNonFunctional,
    torch._C.DispatchKey.CompositeExplicitAutograd,
    torch._C.DispatchKey.CompositeImplicitAutograd,
)
"""Kernels for all backends, in the order in which the dispatcher looks for them."""


class Inside(TorchDispatchMode):
    """Runs one op in place of the dispatcher; `calls` is then what it and those below it called.

    The order of dispatch is that of a device: below autograd, where an op that decomposes is still
    asked for by its own name.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: dict[str, dict[str, None]] = {}
        """Overload that was followed → overloads that it called directly, qualified, in order; the
        last is `MORE` where it could not be followed to its end."""
        self._path: list[str] = []

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The op's result. Raises what the op itself raises.

        Tensors without values may have a kernel for the whole op and none for its parts; an op that
        wrote to its arguments is not run twice.
        """
        name = describe.op_name(func)
        if name not in query.branching() or name in self._path:
            return func(*args, **kwargs)
        key = _kernel(func.name())
        if key is None:
            return func(*args, **kwargs)
        try:
            return self._follow(name, func, key, args, kwargs)
        except Exception:
            self.calls[name][MORE] = None
            if func._schema.is_mutable:
                raise
            return func(*args, **kwargs)

    def _follow(
        self, name: str, func: Any, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        self.calls.setdefault(name, {})
        self._path.append(name)
        try:
            with self:
                return func._op_dk(key, *args, **kwargs)
        finally:
            self._path.pop()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self.calls[self._path[-1]][describe.op_name(func)] = None
        return self.run(func, args, kwargs or {})


def _kernel(name: str) -> Any:
    """The dispatch key of an op's kernel for all backends, None where it has none."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return next((key for key in _KEYS if has(name, key.name)), None)
