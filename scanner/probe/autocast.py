"""Half-precision variants: configurations as autocast would run them, beside those of the model.

An op is taken to be cast when autocast casts it, or the op it is captured for, or the op whose
backward it is: autocast is off during the backward pass, but gradients have the dtype that their
forward had. The optimizer's ops stay as they are.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from scanner.children import importable
from scanner.errors import OpscanError, UsageError
from scanner.probe.plan import config_key
from scanner.records import Measurement, OpCall, TensorSpec, Variant

__all__ = [
    "DTYPES",
    "NO_VARIANTS",
    "WIDE",
    "Variants",
    "in_dtype",
    "names_of",
    "parse_dtypes",
    "variants_of",
]

DTYPES = ("float16", "bfloat16")
"""What autocast can cast to on MPS."""

WIDE = "float32"
"""What it casts."""


def parse_dtypes(text: str) -> tuple[str, ...]:
    """`float16,bfloat16` as dtypes, each once. Raises `UsageError` for any other."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in found:
        if name not in DTYPES:
            raise UsageError(
                f"autocast cannot cast to {name!r} on MPS",
                remedy=f"Write --autocast {','.join(DTYPES)}, or one of the two.",
            )
    return found


@dataclass(frozen=True)
class Variants:
    """The variants of a scan: `config_key` of a configuration → dtype → its variant."""

    calls: Mapping[str, Mapping[str, OpCall]]

    def to_run(self) -> list[OpCall]:
        """All of them."""
        return [call for found in self.calls.values() for call in found.values()]

    def in_dtypes(self) -> dict[str, list[OpCall]]:
        """All of them by dtype."""
        dtypes = dict.fromkeys(dtype for found in self.calls.values() for dtype in found)
        return {
            dtype: [found[dtype] for found in self.calls.values() if dtype in found]
            for dtype in dtypes
        }

    def of(self, call: OpCall, measured: Mapping[str, Measurement]) -> tuple[Variant, ...]:
        """What a device did with the variants of a configuration, beside what it did with it."""
        base = measured.get(config_key(call))
        return tuple(
            _compared(dtype, result, base)
            for dtype, variant in self.calls.get(config_key(call), {}).items()
            if (result := measured.get(config_key(variant))) is not None
        )


NO_VARIANTS = Variants({})


def variants_of(
    calls: Sequence[OpCall], dtypes: Sequence[str], environ: Mapping[str, str]
) -> Variants:
    """The variants that autocast would run of some configurations.

    Asks the installed torch in a process of its own; raises `OpscanError` when that fails.
    """
    candidates = [call for call in calls if _may_be_cast(call)] if dtypes else []
    if not candidates:
        return NO_VARIANTS
    cast = _ask({name for call in candidates for name in names_of(call)}, dtypes, environ)
    found: dict[str, dict[str, OpCall]] = {}
    for call in candidates:
        for dtype in dtypes:
            if not cast[dtype].isdisjoint(names_of(call)):
                found.setdefault(config_key(call), {})[dtype] = in_dtype(call, dtype)
    return Variants(found)


def in_dtype(call: OpCall, dtype: str, *, of: str = WIDE) -> OpCall:
    """The configuration with its tensors of one dtype on the device in another."""

    def cast(specs: Iterable[TensorSpec]) -> tuple[TensorSpec, ...]:
        return tuple(
            msgspec.structs.replace(spec, dtype=dtype)
            if spec.dtype == of and spec.device != "cpu"
            else spec
            for spec in specs
        )

    return msgspec.structs.replace(call, inputs=cast(call.inputs), outputs=cast(call.outputs))


def names_of(call: OpCall) -> tuple[str, ...]:
    """Ops by which autocast may know a call: itself, what it stands for, and their forwards."""
    names = [name for name in (call.op, call.via) if name]
    return tuple(dict.fromkeys([*names, *(f for name in names for f in _forwards(name))]))


def _forwards(op: str) -> list[str]:
    namespace, _, rest = op.partition("::")
    name = rest.partition(".")[0]
    if name.startswith("_scaled_dot_product"):
        return [f"{namespace}::scaled_dot_product_attention"]
    forward = name.removesuffix("_backward")
    # `mps_convolution_backward` is that of `_mps_convolution`.
    return [] if forward == name else [f"{namespace}::{forward}", f"{namespace}::_{forward}"]


def _may_be_cast(call: OpCall) -> bool:
    return call.phase != "optimizer" and any(
        spec.dtype == WIDE and spec.device != "cpu" for spec in call.inputs
    )


def _ask(
    names: Iterable[str], dtypes: Sequence[str], environ: Mapping[str, str]
) -> dict[str, set[str]]:
    with tempfile.TemporaryDirectory(prefix="opscan-autocast-") as folder:
        done = subprocess.run(
            [sys.executable, "-m", "scanner.probe.autocast_ops", *dtypes],
            input=msgspec.json.encode(sorted(names)),
            capture_output=True,
            cwd=folder,
            env=importable(environ),
            check=False,
        )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise OpscanError(
            f"torch does not say what autocast casts: {said[-1] if said else 'no output'}",
            remedy="Leave out --autocast.",
        )
    return msgspec.json.decode(done.stdout, type=dict[str, set[str]])


def _compared(dtype: str, result: Measurement, base: Measurement | None) -> Variant:
    ours, theirs = (_device_s(each) for each in (result, base))
    beside = result.detail.get("precision") or {}
    return Variant(
        dtype=dtype,
        measurement=result,
        error=beside.get("error"),
        base_error=beside.get("base_error"),
        overflows=beside.get("overflows", 0),
        speedup=theirs / ours if ours and theirs else None,
    )


def _device_s(measurement: Measurement | None) -> float | None:
    timing = measurement.detail.get("timing") if measurement is not None else None
    return float(timing["device"]["median_s"]) if timing else None
