"""What capturing costs: `python bench/capture.py [--rounds N]`, as whole processes taking turns.

    step     one training step of fixtures/models/llama.py (32 layers, 7B parameters) on the meta
             device and nothing else: no recording
    opscan   `opscan fixtures/models/llama.py --target torch==2.15.0 -f json`, children included
    make_fx  forward and backward of a 4-layer one, traced with stack traces

Wall time, processor time and the resident memory of the largest process; medians over the rounds.
Exit code 1 when opscan takes more than 1.6 times as long as the bare step, or 1 GiB.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LLAMA = "fixtures/models/llama.py"
STEP = """
import sys
import torch
sys.path.insert(0, "fixtures/models")
import llama
with torch.device("meta"):
    model, inputs, loss, optimizer = llama.opscan_model()
loss(model(*inputs)).backward()
optimizer.step()
"""
MAKE_FX = """
import sys
import torch
from torch.fx.experimental.proxy_tensor import make_fx
sys.path.insert(0, "fixtures/models")
import llama
llama.Config.__init__.__defaults__ = (32000, 4096, 11008, 32, 4, 512)
with torch.device("meta"):
    model, inputs, loss, _ = llama.opscan_model()
    names = [name for name, _ in model.named_parameters()]

    def step(params, ids):
        out = torch.func.functional_call(model, dict(zip(names, params)), (ids,))
        return torch.autograd.grad(loss(out), params)

    graph = make_fx(step, record_stack_traces=True)(list(model.parameters()), *inputs)
assert sum("stack_trace" in node.meta for node in graph.graph.nodes) > 100
"""
MEASURE = """
import json, resource, subprocess, sys, time
begun = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
seconds = time.perf_counter() - begun
used = resource.getrusage(resource.RUSAGE_CHILDREN)
unit = 1 if sys.platform == "darwin" else 1024
cpu = used.ru_utime + used.ru_stime
print(json.dumps([done.returncode, seconds, cpu, used.ru_maxrss * unit]))
"""
"""Runs one command; the largest of its descendants is then the largest of our own."""
COMMANDS = {
    "step": [sys.executable, "-c", STEP],
    "opscan": [
        *(sys.executable, "-m", "scanner", LLAMA, "--target", "torch==2.15.0", "-f", "json"),
    ],
    "make_fx": [sys.executable, "-c", MAKE_FX],
}
RATIO, PEAK = 1.6, 2**30
"""Limits for opscan: times the bare step, and bytes."""


@dataclass(frozen=True)
class Sample:
    """One run of one command."""

    seconds: float
    cpu: float
    """Processor seconds of all processes: what is left when others use the machine too."""
    peak: int
    """Resident bytes of the largest process."""


def measure(command: list[str]) -> Sample:
    """Runs a command to its end; findings (exit code 1) are no failure."""
    meter = [sys.executable, "-c", MEASURE, *command]
    out = subprocess.run(meter, cwd=ROOT, capture_output=True, text=True, check=True)
    code, *values = json.loads(out.stdout)
    if code not in {0, 1}:
        raise SystemExit(f"{command[1:4]} exited with {code}: {out.stderr[-2000:]}")
    return Sample(*values)


def show(name: str, samples: list[Sample], base: float) -> None:
    """One line of the table."""
    times = sorted(sample.seconds for sample in samples)
    median = statistics.median(times)
    cpu = statistics.median(sample.cpu for sample in samples)
    peak = max(sample.peak for sample in samples) / 2**20
    print(
        f"{name:8} {median:7.2f} s   {times[0]:6.2f} to {times[-1]:6.2f} s"
        f"   {median / base:5.2f} x   {cpu:7.2f} s   {peak:7.0f} MiB"
    )


def main() -> int:
    """Print a table; 1 when a limit is passed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    samples: dict[str, list[Sample]] = {name: [] for name in COMMANDS}
    for index in range(rounds + 1):
        for name, command in COMMANDS.items():
            sample = measure(command)
            if index:  # the first round fills the file cache
                samples[name].append(sample)
    base = statistics.median(sample.seconds for sample in samples["step"])
    print(f"{'':8} {'median':>9}   {'range':>16}   {'step':>7}   {'CPU':>9}   {'peak':>11}")
    for name, taken in samples.items():
        show(name, taken, base)
    ratios = [
        own.seconds / bare.seconds
        for own, bare in zip(samples["opscan"], samples["step"], strict=True)
    ]
    ratio = statistics.median(ratios)
    peak = max(sample.peak for sample in samples["opscan"])
    print(f"opscan / step, round by round: {ratio:.2f} (limit {RATIO})")
    return int(ratio > RATIO or peak > PEAK)


if __name__ == "__main__":
    sys.exit(main())
