"""Which ops autocast runs in half precision on MPS: asked of the installed torch's autocast.

Run as `python -m scanner.probe.autocast_ops DTYPE...` it reads names of ops from stdin, a JSON
list, and writes a JSON object: dtype → those that are cast to it.

The answer is seen, not looked up: each op is called with float32 tensors under
`torch.autocast("mps", dtype)`, and what it sends to the dispatcher first tells whether they were
cast. Fake tensors stand in for those of a device, so that this works on any machine, and nothing is
computed: once something else than a cast arrives, the call is given up.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from typing import Any

import msgspec
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from scanner.backends.overloads import overload

__all__ = ["is_cast", "main"]

_DEVICE = "mps"
_KEY = "AutocastMPS"
_CASTS = "aten::_to_copy"


class _Seen(Exception):  # noqa: N818  (a way out, not an error)
    """The op has reached the dispatcher."""


class _Watch(TorchDispatchMode):
    """Notes casts to a dtype, and lets nothing else happen."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._dtype = dtype
        self.cast = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Lets casts and questions about devices pass."""
        if func.name() == _CASTS:
            self.cast |= (kwargs or {}).get("dtype") is self._dtype
        elif func.namespace == "aten":
            raise _Seen
        return func(*args, **(kwargs or {}))


def is_cast(op: str, dtype: torch.dtype) -> bool:
    """Whether autocast casts float32 arguments of `aten::mm` to the dtype; no for unknown ops."""
    try:
        func = overload(op)
    except LookupError:
        return False
    if not torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), _KEY):
        return False
    watch = _Watch(dtype)
    with FakeTensorMode(), torch.autocast(_DEVICE, dtype=dtype), torch.no_grad():
        args, kwargs = _arguments(func)
        # Shapes that do not fit are refused after the casts.
        with watch, contextlib.suppress(_Seen, RuntimeError, TypeError, ValueError):
            func(*args, **kwargs)
    return watch.cast


def _arguments(func: Any) -> tuple[list[Any], dict[str, Any]]:
    """Something for every argument that must be given."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for argument in func._schema.arguments:
        if argument.has_default_value():
            continue
        value = _value(str(argument.type))
        if argument.kwarg_only:
            kwargs[argument.name] = value
        else:
            args.append(value)
    return args, kwargs


def _value(kind: str) -> Any:
    if kind.startswith("Optional["):
        return None
    if kind.startswith("List["):
        return [_value(kind.removeprefix("List[").removesuffix("]"))] * 2
    if kind == "Tensor":
        return torch.zeros(4, 4, device=_DEVICE)
    return {"bool": False, "str": "", "float": 0.5}.get(kind, 1)


def main(dtypes: list[str]) -> int:
    """Answers for the ops named on stdin."""
    warnings.simplefilter("ignore")
    names = msgspec.json.decode(sys.stdin.buffer.read(), type=list[str])
    found = {
        dtype: [name for name in names if is_cast(name, getattr(torch, dtype))] for dtype in dtypes
    }
    sys.stdout.buffer.write(msgspec.json.encode(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
