"""Start, time per call and memory of a simulated release: `python bench/simulator.py 2.15.0`.

Calls are PyTorch's own samples; each is made twice, and the second time counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import torch

from scanner.backends.interface import Inconclusive
from scanner.backends.metal_sim import Simulator, open_simulator
from scanner.probe.attempt import on_device
from scanner.probe.inputs import drawn
from scanner.probe.opinfo import op_calls
from scanner.probe.rebuild import Unbuildable, bind
from scanner.probe.schema import schema_of
from scanner.records import OpCall

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> tuple[int, int]:
    """Bytes in memory, and those of them that are shared with files."""
    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * _PAGE, int(fields[2]) * _PAGE


def timed(device: Simulator, call: OpCall) -> float | None:
    """Seconds of the second of two calls; None where it cannot be made."""
    schema = schema_of(call.op)
    seconds = 0.0
    for _ in range(2):
        try:
            operands = drawn(schema, call, 0)
            tensors, _ = on_device(device, call, operands)
            bound = bind(schema, call, tensors, torch.device("mps"))
            seen = device.observe(call.op, bound.args, bound.kwargs)
        except (Inconclusive, Unbuildable, TypeError):
            return None
        device.forget()
        if seen.outcome == "unknown":
            return None
        seconds = seen.seconds
    return seconds


def main() -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("release")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    before = resident()
    started = time.perf_counter()
    device = open_simulator(f"metal-sim:{options.release}")
    unusable = device.check()
    if unusable is not None:
        print(unusable.reason, unusable.remedy, sep="\n", file=sys.stderr)
        return 2
    opened = time.perf_counter() - started
    calls = [call for _, call in op_calls(options.names, [options.dtype], options.samples)]
    found = [each for call in calls if (each := timed(device, call)) is not None]
    after = resident()
    quantiles = statistics.quantiles(found, n=20, method="inclusive")
    print(f"torch {options.release}, {options.dtype}: opened and proven in {opened:.2f} s")
    print(
        f"{len(found)} of {len(calls)} calls executed; a warm one takes {quantiles[9] * 1e3:.1f} ms"
    )
    print(f"in the median, {quantiles[18] * 1e3:.1f} ms in the 95th percentile")
    grown, shared = after[0] - before[0], after[1] - before[1]
    print(
        f"resident memory grew by {grown >> 20} MiB, of which {shared >> 20} MiB are shared files"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
