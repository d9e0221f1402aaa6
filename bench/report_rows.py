"""Makes the table of collected bug reports that tests hold the known issues against.

    python bench/report_rows.py bug_reports.jsonl > tests/opdb/issues/report_rows.tsv

The collection is one JSON object a line: `id`, `repo`, `number`, `framework`, `class`, `version`,
`versions_affected`, `fixed_in`, `fix_confidence` and texts. The table keeps, of the reports about
torch, what identifies them and says which releases they are about, in the order of their ids.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COLUMNS = (
    "id",
    "class",
    "repo",
    "number",
    "version",
    "versions_affected",
    "fixed_in",
    "fix_confidence",
)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collection", type=Path)
    sys.stdout.writelines(
        f"{line}\n" for line in table(parser.parse_args().collection.read_bytes())
    )


def table(collection: bytes) -> Iterator[str]:
    """Where it is from, the columns' names, and a line for each report about torch."""
    rows = [json.loads(line) for line in collection.splitlines()]
    digest = hashlib.sha256(collection).hexdigest()
    yield f"# bench/report_rows.py, of a collection with sha256 {digest}"
    yield "\t".join(COLUMNS)
    ours = (row for row in rows if row["framework"] == "torch")
    yield from sorted("\t".join(_text(row[column]) for column in COLUMNS) for row in ours)


def _text(value: Any) -> str:
    return " ".join(str(value).split())


if __name__ == "__main__":
    main()
