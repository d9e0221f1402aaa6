"""Where results are kept: measurements from scan to scan, journals until a scan is finished.

A scan that is cut short, by Ctrl-C, `kill -9` or a power loss, leaves its journals behind, and the
same scan takes them up when it is run again. One that comes to its end removes them: from then on
the store has what it measured.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scanner.probe.plan import conditions_key, config_key
from scanner.records import OpCall

__all__ = ["Keeping"]

_OUTDATED_S = 7 * 86400
"""Journals that nobody took up for so long are removed: drivers and files have changed."""


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """Where one scan finds and leaves results; nowhere by default."""

    store: Path | None = None
    """The file of measurements."""
    fresh: bool = False
    """Whether what `store` has from earlier scans is run again, and replaced."""
    journals: Path | None = None
    """Folder for the journals of unfinished scans; after `of_scan`, of this one."""

    def of_scan(self, device: str, calls: Iterable[OpCall], options: Mapping[str, Any]) -> Keeping:
        """The same for one scan, which is known by what it runs on what."""
        if self.journals is None:
            return self
        _tidy(self.journals)
        keys = sorted({config_key(call) for call in calls})
        scan = conditions_key(
            {"device": device, "options": options, "fresh": self.fresh, "configurations": keys}
        )
        return replace(self, journals=self.journals / scan)

    def journal(self, settings: Mapping[str, Any]) -> Path | None:
        """The journal of one pass of the scan, which is known by its settings."""
        return self.journals and self.journals / f"{conditions_key(settings)}.jsonl"

    def finished(self) -> None:
        """Forget the journals of this scan."""
        if self.journals is not None:
            shutil.rmtree(self.journals, ignore_errors=True)


def _tidy(folder: Path) -> None:
    try:
        scans = list(folder.iterdir())
    except OSError:  # there is none yet, or nothing can be kept in it
        return
    for scan in scans:
        with suppress(OSError):
            latest = max((file.stat().st_mtime for file in scan.iterdir()), default=0.0)
            if time.time() - latest > _OUTDATED_S:
                shutil.rmtree(scan, ignore_errors=True)
