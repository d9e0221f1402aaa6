"""What isolation costs: the same configurations in a worker and in a plain loop in this process.

    python bench/isolation.py --device cpu --count 600

Start-up (interpreter, torch, proving the device) is reported apart: it is paid once a worker.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import msgspec

from scanner.probe.limits import Launch
from scanner.probe.observer import Observer
from scanner.probe.supervisor import probe
from scanner.records import OpCall


def main() -> int:
    """Print both times and their ratio."""
    options = _options()
    calls = _calls(options.count)
    isolated, plain = [], []
    # Whoever comes first reads the framework's libraries from the disk.
    _plain(calls, options.device)
    for _ in range(options.rounds):
        isolated.append(_isolated(calls, options.device))
        plain.append(_plain(calls, options.device))
        print(f"  isolated {isolated[-1]:.2f} s, plain {plain[-1]:.2f} s", flush=True)
    ratio = median(each / other for each, other in zip(isolated, plain, strict=True))
    each_ms = median(plain) / len(calls) * 1e3
    print(f"{len(calls)} configurations on {options.device}, {each_ms:.2f} ms each in a plain loop")
    print(f"isolation costs {ratio - 1:.1%}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def _calls(count: int) -> list[OpCall]:
    command = [sys.executable, "-m", "scanner.probe.opinfo", "--samples", "3"]
    lines = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    calls = [msgspec.convert(msgspec.json.decode(line)["call"], OpCall) for line in lines]
    step = max(1, len(calls) // count)
    return calls[::step][:count]


class _Clock(Observer):
    def ready(self, *_: object) -> None:
        self.start = time.perf_counter()


def _isolated(calls: list[OpCall], device: str) -> float:
    """Seconds from the worker's being ready to the last outcome, journal included."""
    clock = _Clock()
    with tempfile.TemporaryDirectory() as name:
        journal = Path(name) / "journal"
        last = 0.0
        for _ in probe(
            calls, device, {}, launch=Launch(workers=1), observer=clock, journal=journal
        ):
            last = time.perf_counter()
    return last - clock.start


def _plain(calls: list[OpCall], device: str) -> float:
    """The same in a process of its own, so that both start from the same state."""
    code = (
        "import sys, time, msgspec\n"
        "from scanner.records import OpCall\n"
        "from scanner.probe.torch_runner import TorchRunner\n"
        "calls = msgspec.json.decode(sys.stdin.buffer.read(), type=list[OpCall])\n"
        "runner = TorchRunner(sys.argv[1], {})\n"
        "runner.check()\n"
        "start = time.perf_counter()\n"
        "for call in calls:\n"
        "    runner.run(call)\n"
        "print(time.perf_counter() - start)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, device],
        input=msgspec.json.encode(calls),
        capture_output=True,
        check=True,
    )
    return float(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    sys.exit(main())
