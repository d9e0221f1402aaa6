"""`python -m opdb.build.execution.worker RELEASE MACOS DTYPE,… SAMPLES FOLDER`: a file a dtype.

A process of its own: it loads torch and the emulator.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from opdb.build.execution.layouts import LAYOUTS
from opdb.build.execution.observation import Header, write
from opdb.build.execution.sweep import observe
from scanner.errors import OpscanError
from scanner.sim.assemble import open_release, simulator_digest
from scanner.sim.host import known_gpu

_CHIP = "M2"
_LAID_OUT = frozenset({"float32", "int64"})
"""dtypes whose calls are repeated in other layouts: the choice depends little on the dtype."""


def main() -> int:
    """Status 2 with one line on stderr where the release cannot be opened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release")
    parser.add_argument("macos")
    parser.add_argument("dtypes")
    parser.add_argument("samples", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    try:
        _sweep(options)
    except OpscanError as error:
        print(error.message, file=sys.stderr)  # noqa: T201
        return 2
    return 0


def _sweep(options: argparse.Namespace) -> None:
    gpu = known_gpu(_CHIP)
    digest = simulator_digest()
    with open_release(options.release, options.macos, gpu) as session:
        for dtype in options.dtypes.split(","):
            layouts = LAYOUTS if dtype in _LAID_OUT else ()
            seen = list(observe(session, dtype, options.samples, layouts, options.names))
            header = Header(
                release=options.release,
                macos=options.macos,
                gpu=gpu.name,
                dtype=dtype,
                samples=options.samples,
                simulator=digest,
                wheel=session.prepared.manifest.wheel_sha256,
                reference=str(torch.__version__),
            )
            write(options.folder / f"{dtype}.jsonl", header, seen)


if __name__ == "__main__":
    sys.exit(main())
