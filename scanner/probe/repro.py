"""A script that shows one failure, with nothing but torch wherever that is possible."""

from __future__ import annotations

import base64
import textwrap
import zlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from scanner.probe.expected import Expected, dense
from scanner.probe.gradients import differentiable
from scanner.probe.outcome import CaseResult
from scanner.probe.rebuild import Operands, Unbuildable, bind
from scanner.probe.repro_template import TEMPLATE
from scanner.probe.schema import Schema, schema_of
from scanner.probe.standards import private_outputs, standard_of
from scanner.probe.substitutes import DEVICE_SAVED, SUBSTITUTES
from scanner.probe.trials import call_for, operands_for
from scanner.records import OpCall

__all__ = ["repro_script"]

_EMBEDDED = 1 << 18
"""Bytes of arguments that are written into the script; larger ones are drawn again by it."""
_WIDTH = 96
_LINGER_S = 0.2
_OF_TORCH = frozenset({"cpu", "cuda", "mps"})
_ON_OURS = """
# The device is one of opscan's own: only with opscan can the script run on it.
from scanner.backends.open import open_device

OURS = open_device(DEVICE)
"""
_REFERENCE = """
# No op that the CPU has computes the same: the reference is opscan's.
from scanner.backends.overloads import runnable

REFERENCE = runnable("{op}", "cpu")
"""


def repro_script(
    call: OpCall, result: CaseResult, device: str, values: Sequence[Tensor] | None = None
) -> str:
    """The source of a script that exits with 1 as long as `device` fails as it did.

    `device` is spelled as on the command line. Raises `Unbuildable` when no script can show it, and
    `LookupError` when the installed torch does not have the op.
    """
    schema = schema_of(call.op)
    if schema.op in DEVICE_SAVED:
        raise Unbuildable("it needs what its forward op keeps for itself")
    operands = operands_for(schema, call, result.seed, result.trial, values)
    call = call_for(schema, call, result.trial)
    checks = _checks(schema, call, result)
    embedded = _embedded(operands) and device.partition(":")[0] in _OF_TORCH
    borrowed = schema.op in SUBSTITUTES and (not embedded or checks != [None])
    return TEMPLATE.format(
        op=call.op,
        status=result.status,
        reason=_wrapped(result.reason or result.error or "the device and the CPU differ"),
        device=device,
        callable=_callable(call.op),
        storages=_storages(operands),
        tensors=_tensors(call, operands),
        arguments=_arguments(schema, call),
        changed=_changed(schema, call, result),
        expected="" if borrowed else _expected(schema, call, operands),
        adapter=_adapter(schema, device, borrowed=borrowed),
        checks=checks,
        layout=_detected(result, "stride"),
        private=sorted(int(name) for name in private_outputs(schema, call)),
        linger=_LINGER_S,
    )


def _adapter(schema: Schema, device: str, *, borrowed: bool) -> str:
    ours = "" if device.partition(":")[0] in _OF_TORCH else _ON_OURS
    return ours + (_REFERENCE.format(op=schema.op) if borrowed else "")


def _embedded(operands: Operands) -> bool:
    return sum(storage.nbytes for storage in operands.storages) <= _EMBEDDED


def _wrapped(text: str) -> str:
    safe = text.replace("\\", "/").replace('"""', "'''")
    return textwrap.fill(safe, _WIDTH)


def _callable(op: str) -> str:
    namespace, _, rest = op.partition("::")
    name, _, variant = rest.partition(".")
    return f"torch.ops.{namespace}.{name}.{variant or 'default'}"


def _storages(operands: Operands) -> str:
    embedded = _embedded(operands)
    lines = []
    for storage in operands.storages:
        dtype = str(storage.dtype)
        if embedded:
            lines.append(f"    stored({dtype}, {_packed(storage)}),")
        else:
            low, high = _range(storage)
            lines.append(f"    drawn({dtype}, {storage.numel()}, {low!r}, {high!r}),")
    return "\n".join(lines)


def _packed(tensor: Tensor) -> str:
    raw = tensor.contiguous().view(torch.uint8) if tensor.numel() else torch.empty(0)
    data = base64.b85encode(zlib.compress(bytes(raw.reshape(-1).tolist()), 9)).decode("ascii")
    parts = textwrap.wrap(data, _WIDTH - 12)
    return "\n        " + "\n        ".join(repr(part) for part in parts) + "\n    "


def _range(storage: Tensor) -> tuple[Any, Any]:
    """Whole numbers with an open end for integer dtypes; the range of finite values else."""
    if storage.is_complex():
        return -1.0, 1.0
    if not storage.is_floating_point():
        whole = storage.to(torch.int64)
        return int(whole.min()), int(whole.max()) + 1
    finite = storage.double()[storage.isfinite()]
    return (float(finite.min()), float(finite.max())) if finite.numel() else (0.0, 1.0)


def _tensors(call: OpCall, operands: Operands) -> str:
    """One line a tensor: storage, shape, strides, offset, dtype, whether it stays on the host."""
    lines = []
    for spec, tensor, group in zip(call.inputs, operands.tensors, operands.groups, strict=True):
        if group is None:
            packed = _packed(dense(tensor))
            shape = tuple(tensor.shape)
            lines.append(
                f"    sparse(stored({tensor.dtype}, {packed}).reshape({shape}), {tensor.layout}),"
            )
            continue
        place = f"{group}, {tuple(tensor.shape)}, {tuple(tensor.stride())}"
        rest = f"{tensor.storage_offset()}, {tensor.dtype}, {spec.device == 'cpu'}"
        lines.append(f"    ({place}, {rest}),  # {spec.name}")
    return "\n".join(lines)


def _checks(schema: Schema, call: OpCall, result: CaseResult) -> list[list[int] | None]:
    """What failed: None for what the op returns, positions of arguments for their gradients.

    Where a process ended, nobody knows in which of the two.
    """
    kinds = ("float", "bfloat", "complex")
    floating = [at for at, spec in enumerate(call.inputs) if spec.dtype.startswith(kinds)]
    if result.gradient is None:
        both = result.status == "crash" and floating and differentiable(schema, call)
        return [None, floating] if both else [None]
    if result.gradient.status in {"native", "skipped"}:
        return [None]
    compared = {output.name.removeprefix("grad of ") for output in result.gradient.outputs}
    named = [place for place, spec in enumerate(call.inputs) if spec.name in compared]
    return [named or floating]


class _Named:
    """Prints as a name in the script."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


def _arguments(schema: Schema, call: OpCall) -> str:
    """The call as source text; `t` are the tensors, `device` the device, `w` raises a dtype."""
    bound = bind(schema, call, [_Named(f"t[{place}]") for place in range(len(call.inputs))], "meta")
    args = [_source(value) for value in bound.args]
    kwargs = [f"{name}={_source(value)}" for name, value in bound.kwargs.items()]
    return ", ".join([*args, *kwargs])


def _source(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_source(item) for item in value)}]"
    if isinstance(value, torch.dtype):
        return f"w({value})"
    if isinstance(value, torch.device):
        return "device" if value.type == "meta" else "'cpu'"
    if isinstance(value, float | complex) and not isinstance(value, bool):
        return f"{type(value).__name__}({str(value)!r})"
    return repr(value)


def _detected(result: CaseResult, *kinds: str) -> bool:
    return any(detection.kind in kinds for detection in result.detections)


def _changed(schema: Schema, call: OpCall, result: CaseResult) -> str:
    """Arguments that the op writes; all of them when it has written one that it must not."""
    if _detected(result, "input-clobbered", "out-of-bounds"):
        return repr(list(range(len(call.inputs))))
    names = [spec.name.partition("[")[0] for spec in call.inputs]
    return repr([place for place, name in enumerate(names) if name in schema.written])


def _expected(schema: Schema, call: OpCall, operands: Operands) -> str:
    """Reference outputs, for ops that the CPU does not have; else nothing."""
    if schema.op not in SUBSTITUTES:
        return ""
    expected = Expected(schema, call, operands, standard_of(schema, call), widest=1 << 31)
    outputs = expected.cpu.outputs.values()
    return "\n".join(
        f"    stored({output.dtype}, {_packed(dense(output))}).reshape({tuple(output.shape)}),"
        for output in outputs
    )
