"""What tolerances do not see, or do not explain: shapes of failure, and broken promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from scanner.probe.expected import same_bits
from scanner.probe.layout import covered
from scanner.probe.outcome import Detection
from scanner.probe.rebuild import Operands

__all__ = ["clobbered", "failure_shapes", "ignored", "metadata", "nondeterministic"]

_TILE = 4
"""Neighbouring zeros that make a tile; one alone can be chance."""


def failure_shapes(where: str, device: Tensor, cpu: Tensor, failing: Tensor) -> Iterator[Detection]:
    """Names the pattern of a failing output: all zero, one value, a tile that was never written."""
    if device.numel() < 2:
        return
    flat, expected = device.reshape(-1), cpu.reshape(-1)
    if not bool(flat.any()) and bool(expected.any()):
        yield Detection(kind="all-zero", where=where, message="every element is zero")
        return
    constant = bool((flat == flat[0]).all()) and not bool((expected == expected[0]).all())
    if constant:
        message = f"every element is {flat[0].item()}"
        yield Detection(kind="constant", where=where, message=message)
        return
    lost = (flat == 0) & (expected != 0) & failing.reshape(-1)
    start, length = _longest_run(lost)
    if length >= _TILE:
        message = f"{length} neighbouring elements from flat index {start} are zero"
        yield Detection(kind="zero-tile", where=where, message=message)


def _longest_run(mask: Tensor) -> tuple[int, int]:
    """Start and length of the longest run of True."""
    padded = torch.nn.functional.pad(mask.to(torch.int8), (1, 1))
    edges = padded.diff()
    starts, ends = (edges == 1).nonzero().reshape(-1), (edges == -1).nonzero().reshape(-1)
    if not starts.numel():
        return 0, 0
    lengths = ends - starts
    best = int(lengths.argmax())
    return int(starts[best]), int(lengths[best])


def metadata(
    where: str, device: Tensor, cpu: Tensor, *, exact_strides: bool, promised: Sequence[int] | None
) -> Iterator[Detection]:
    """Dtype, shape and strides against the CPU's.

    `promised` are the strides of torch's own shape function for the op: where the CPU keeps to
    them, they are what compilers rely on, and every backend has to. With `exact_strides` off, any
    dense order of dimensions is accepted.
    """
    if device.dtype != cpu.dtype:
        yield _differs("dtype", where, str(device.dtype)[6:], str(cpu.dtype)[6:])
    if device.shape != cpu.shape:
        yield _differs("shape", where, tuple(device.shape), tuple(cpu.shape))
        return
    if torch.strided not in (device.layout, cpu.layout) or not cpu.numel():
        return
    ours, theirs = _meaningful(device), _meaningful(cpu)
    if ours == theirs or (promised is not None and ours == _meaningful(cpu, promised)):
        return
    if exact_strides or (_dense(cpu) and not _dense(device)):
        yield _differs("stride", where, tuple(device.stride()), tuple(cpu.stride()))


def _meaningful(tensor: Tensor, stride: Sequence[int] | None = None) -> tuple[int, ...]:
    """Strides of dimensions that have more than one element; the others mean nothing."""
    steps = tensor.stride() if stride is None else stride
    return tuple(step for size, step in zip(tensor.shape, steps, strict=True) if size > 1)


def _dense(tensor: Tensor) -> bool:
    """Whether the elements fill a block of memory, in any order of dimensions."""
    expected = 1
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size == 1:
            continue
        if step != expected:
            return False
        expected *= size
    return True


def _differs(kind: str, where: str, device: object, cpu: object) -> Detection:
    return Detection(
        kind=kind,  # type: ignore[arg-type]
        where=where,
        message=f"{kind} is {device} on the device, {cpu} on the CPU",
    )


def clobbered(
    before: Operands, after: Sequence[Tensor], names: Sequence[str], changed: frozenset[int]
) -> Iterator[Detection]:
    """Storage that the op should not have touched: whole inputs, and the gaps around outputs.

    `after` are the storages as they came back; `changed` are positions of changed tensors.
    """
    for group, (storage, now) in enumerate(zip(before.storages, after, strict=True)):
        if torch.equal(_bytes(storage), _bytes(now)):
            continue
        touched = _bytes(storage) != _bytes(now)
        members = [place for place, at in enumerate(before.groups) if at == group]
        writable = [before.tensors[place] for place in members if place in changed]
        name = names[members[0]]
        count = int(touched.any(-1).sum())
        if not writable:
            message = f"{count} elements of an argument that the op only reads have changed"
            yield Detection(kind="input-clobbered", where=name, message=message)
            continue
        outside = touched.any(-1) & ~covered(storage, writable)
        if bool(outside.any()):
            message = f"{int(outside.sum())} elements outside the argument's view have changed"
            yield Detection(kind="out-of-bounds", where=name, message=message)


def _bytes(storage: Tensor) -> Tensor:
    return storage.view(torch.uint8).reshape(-1, storage.element_size())


def ignored(where: str, device: Tensor, before: Tensor, cpu: Tensor) -> Iterator[Detection]:
    """An argument that the CPU changed and the device left as it was."""
    if same_bits(device, before) and not same_bits(cpu, before):
        message = "the op returned without writing its argument"
        yield Detection(kind="in-place-ignored", where=where, message=message)


def nondeterministic(where: str, first: Tensor, second: Tensor) -> Iterator[Detection]:
    """Equal inputs that gave different bits."""
    if same_bits(first, second):
        return
    count = int((~((first == second) | ((first != first) & (second != second)))).sum())
    message = f"{count} of {first.numel()} elements differ between two runs on equal inputs"
    yield Detection(kind="nondeterministic", where=where, message=message)
