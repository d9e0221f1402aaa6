"""Generated files through `opscan fix`: `python bench/fix_fuzz.py [COUNT [FIRST]]`.

Each is corrected with and without --unsafe. Afterwards it must be Python, keep its comments, its
other lines, its encoding and newlines, and be left as it is by a second run. `--write FOLDER` keeps
the files before and after, for other tools to look at.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scanner.fix.mend import Mender  # noqa: E402
from tests.fix.programs import program  # noqa: E402
from tests.fix.test_generated import MENDERS, check_program  # noqa: E402


def main() -> int:
    """Check files and say how it went."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", default=2000)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    told: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.count):
        for kind, mender in zip(("safe", "unsafe"), MENDERS, strict=True):
            told[f"{kind}: {_one(seed, mender, options.write and options.write / kind)}"] += 1
    for outcome, number in sorted(told.items()):
        print(f"{number:6} {outcome}")
    return 1 if any("failed" in outcome for outcome in told) else 0


def _one(seed: int, mender: Mender, folder: Path | None) -> str:
    try:
        fixed = check_program(program(seed), mender)
    except Exception as error:
        print(f"seed {seed}: {type(error).__name__}: {error}")
        return "failed"
    if fixed is None:
        return "does not compile before"
    if folder is not None:
        for name, content in (("old", fixed.old), ("new", fixed.new)):
            (folder / name).mkdir(parents=True, exist_ok=True)
            (folder / name / f"p{seed}.py").write_bytes(content)
    return "changed" if fixed.new != fixed.old else "left as it was"


if __name__ == "__main__":
    sys.exit(main())
