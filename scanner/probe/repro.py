"""A script that shows one failure with nothing but torch, and the text of an issue about it."""

from __future__ import annotations

import base64
import textwrap
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scanner.backends.interface import DeviceFacts
from scanner.probe.expected import Expected, dense
from scanner.probe.outcome import CaseResult
from scanner.probe.rebuild import Operands, bind
from scanner.probe.repro_template import TEMPLATE
from scanner.probe.schema import Schema, schema_of
from scanner.probe.standards import private_outputs, standard_of
from scanner.probe.substitutes import DEVICE_SAVED, SUBSTITUTES
from scanner.probe.trials import operands_for
from scanner.records import OpCall

__all__ = ["issue_text", "repro_script", "write_repro"]

_EMBEDDED = 1 << 18
"""Bytes of arguments that are written into the script; larger ones are drawn again by it."""
_WIDTH = 96


def write_repro(
    directory: Path,
    call: OpCall,
    result: CaseResult,
    facts: DeviceFacts,
    values: Sequence[Tensor] | None = None,
) -> tuple[Path, Path]:
    """Writes `NAME.py` and `NAME.md` into the directory; their paths.

    `facts.backend` names the device that the script runs on unless it is told another.
    """
    directory.mkdir(parents=True, exist_ok=True)
    script = repro_script(call, result, facts.backend, values)
    name = _file_name(directory, call)
    paths = directory / f"{name}.py", directory / f"{name}.md"
    paths[0].write_text(script, encoding="utf-8")
    paths[1].write_text(issue_text(call, result, facts, script), encoding="utf-8")
    return paths


def _file_name(directory: Path, call: OpCall) -> str:
    plain = call.op.replace("::", "_").replace(".", "_")
    dtype = call.inputs[0].dtype if call.inputs else "none"
    number = 0
    while (directory / f"{plain}_{dtype}_{number}.py").exists():
        number += 1
    return f"{plain}_{dtype}_{number}"


def repro_script(
    call: OpCall, result: CaseResult, device: str, values: Sequence[Tensor] | None = None
) -> str:
    """A script that runs the op on the CPU, in double precision and on a device, and compares.

    It exits with 1 when the device is at fault, with 0 when it is not. Raises `Unbuildable` when
    the configuration cannot be rebuilt.
    """
    schema = schema_of(call.op)
    operands = operands_for(schema, call, result.seed, result.trial, values)
    return TEMPLATE.format(
        op=call.op,
        status=result.status,
        reason=_wrapped(result.reason or result.error or "the device and the CPU differ"),
        device=device,
        callable=_callable(call.op),
        storages=_storages(operands),
        tensors=_tensors(call, operands),
        arguments=_arguments(schema, call),
        changed=_changed(schema, call),
        expected=_expected(schema, call, operands),
        gradient=_gradient(call, result),
        private=sorted(int(name) for name in private_outputs(schema, call)),
    )


def _wrapped(text: str) -> str:
    safe = text.replace("\\", "/").replace('"""', "'''")
    return textwrap.fill(safe, _WIDTH)


def _callable(op: str) -> str:
    namespace, _, rest = op.partition("::")
    name, _, variant = rest.partition(".")
    return f"torch.ops.{namespace}.{name}.{variant or 'default'}"


def _storages(operands: Operands) -> str:
    total = sum(storage.nbytes for storage in operands.storages)
    lines = []
    for storage in operands.storages:
        dtype = str(storage.dtype)
        if total <= _EMBEDDED:
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


def _gradient(call: OpCall, result: CaseResult) -> list[int] | None:
    """Positions of differentiated arguments when a gradient is what failed."""
    if result.gradient is None or result.gradient.status in {"native", "skipped"}:
        return None
    compared = {output.name.removeprefix("grad of ") for output in result.gradient.outputs}
    return [
        place
        for place, spec in enumerate(call.inputs)
        if spec.name in compared or (not compared and "float" in spec.dtype)
    ]


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


def _changed(schema: Schema, call: OpCall) -> str:
    names = [spec.name.partition("[")[0] for spec in call.inputs]
    return repr([place for place, name in enumerate(names) if name in schema.written])


def _expected(schema: Schema, call: OpCall, operands: Operands) -> str:
    """Reference outputs, for ops that the CPU does not have; else nothing."""
    if schema.op not in SUBSTITUTES or schema.op in DEVICE_SAVED:
        return ""
    expected = Expected(schema, call, operands, standard_of(schema, call), widest=1 << 31)
    outputs = expected.cpu.outputs.values()
    return "\n".join(
        f"    stored({output.dtype}, {_packed(dense(output))}).reshape({tuple(output.shape)}),"
        for output in outputs
    )


def issue_text(call: OpCall, result: CaseResult, facts: DeviceFacts, script: str) -> str:
    """Markdown for a bug report: what was expected, what happened, on what, and the script."""
    detections = "\n".join(f"- {d.kind} in {d.where}: {d.message}" for d in result.detections)
    error = f"```\n{result.error}\n```\n\n" if result.error else ""
    details = "\n".join(f"- {key}: {value}" for key, value in sorted(facts.details.items()))
    return (
        f"# `{call.op}` on {facts.backend}: {result.status}\n\n"
        f"{_sentence(result)}\n\n{error}"
        f"{detections}{chr(10) * 2 if detections else ''}"
        f"## Configuration\n\n{_configuration(call)}\n\n"
        f"## Versions\n\n- {facts.framework}\n- {facts.name}\n- {facts.os}\n{details}\n\n"
        f"## Script\n\nIt exits with 1 while the failure lasts.\n\n```python\n{script}```\n"
    )


def _sentence(result: CaseResult) -> str:
    reason = result.reason or "The device and the CPU differ."
    return reason[0].upper() + reason[1:]


def _configuration(call: OpCall) -> str:
    rows = ["| argument | dtype | shape | strides | offset |", "|---|---|---|---|---|"]
    for spec in call.inputs:
        shape, stride = list(spec.shape), list(spec.stride)
        rows.append(f"| `{spec.name}` | {spec.dtype} | {shape} | {stride} | {spec.offset} |")
    others = [f"- `{name}`: `{value!r}`" for name, value in call.attributes.items()]
    return "\n".join([*rows, "", *others]).rstrip()
