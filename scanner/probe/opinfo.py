"""PyTorch's own OpInfo database as op configurations: the way to probe a device as a whole.

Run as `python -m scanner.probe.opinfo` it writes one `OpCall` a line, so that the process that
supervises a device need not import torch.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec
import torch

from scanner.capture.graph import merged
from scanner.capture.placement import Placement
from scanner.capture.recorder import Recorder
from scanner.errors import UsageError
from scanner.probe.rebuild import dtype_of
from scanner.records import OpCall

__all__ = ["entries", "op_calls"]


def op_calls(
    names: Iterable[str], dtypes: Iterable[str], samples: int
) -> Iterator[tuple[str, OpCall]]:
    """(OpInfo name, configuration) for every ATen call of the first `samples` samples.

    A sample that the CPU itself refuses yields nothing. Raises `UsageError` for a name that the
    database does not have.
    """
    chosen = entries(names)
    for info in chosen:
        for dtype in dtypes:
            kind = dtype_of(dtype)
            if kind in info.dtypes:
                yield from ((_name(info), call) for call in _calls(info, kind, samples))


def entries(names: Iterable[str]) -> list[Any]:
    """OpInfo entries by name or `name.variant`; all of them when `names` is empty."""
    from torch.testing._internal.common_methods_invocations import op_db

    wanted = set(names)
    if not wanted:
        return list(op_db)
    found = [info for info in op_db if wanted & {info.name, _name(info)}]
    missing = wanted - {name for info in found for name in (info.name, _name(info))}
    if missing:
        raise UsageError(
            f"OpInfo has no entry named {', '.join(sorted(missing))}",
            remedy="names are PyTorch's own: add, nn.functional.conv2d, linalg.svd",
        )
    return found


def _name(info: Any) -> str:
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else str(info.name)


def _calls(info: Any, dtype: torch.dtype, samples: int) -> tuple[OpCall, ...]:
    recorder = Recorder(lambda _phase: None, Placement(torch.device("cpu")))
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        for sample in _samples(info, dtype, samples):
            _record(recorder, info, sample)
    return merged(recorder.calls())[0]


def _samples(info: Any, dtype: torch.dtype, samples: int) -> list[Any]:
    try:
        return list(islice(info.sample_inputs("cpu", dtype, requires_grad=False), samples))
    except Exception:  # a few generators need what this machine lacks; the entry is then empty
        return []


def _record(recorder: Recorder, info: Any, sample: Any) -> None:
    try:
        with torch.no_grad(), recorder:
            info.op(sample.input, *sample.args, **sample.kwargs)
    except Exception:  # refused by the CPU: no reference, nothing to probe
        return


def main() -> int:
    """Writes `{"name", "call"}` lines to stdout."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--dtype", action="append", default=[])
    parser.add_argument("--samples", type=int, default=5)
    options = parser.parse_args()
    encoder = msgspec.json.Encoder()
    for name, call in op_calls(options.names, options.dtype or ["float32"], options.samples):
        sys.stdout.buffer.write(encoder.encode({"name": name, "call": call}) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
