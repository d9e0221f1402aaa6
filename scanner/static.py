"""`--static`: a report about source files alone. Nothing is run and no framework is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from scanner import __version__
from scanner.judge.gate import Gate, exit_code, summarize
from scanner.records import Report
from scanner.source.discover import shown_roots, source_files
from scanner.source.scan import Scanned, SourcePlan, scan_files

__all__ = ["Static", "StaticPlan", "static_scan"]


@dataclass(frozen=True, kw_only=True)
class StaticPlan:
    """One static scan, completely described."""

    arguments: tuple[str, ...]
    """Files, directories, and `-` for standard input."""
    cwd: Path
    how: SourcePlan = field(default_factory=SourcePlan)
    gate: Gate = field(default_factory=Gate)
    environment: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Static(NamedTuple):
    """The report, and what is said to the user beside it."""

    report: Report
    scanned: Scanned


def static_scan(plan: StaticPlan) -> Static:
    """Judge source files. Raises `SourceError` for an argument that names nothing."""
    files = source_files(plan.arguments, str(plan.cwd))
    scanned = scan_files(files, plan.how)
    source = replace(scanned.source, roots=shown_roots(plan.arguments, str(plan.cwd)))
    return Static(
        Report(
            tool={"name": "opscan", "version": __version__},
            environment={**plan.environment, "notes": list(plan.notes)},
            targets=plan.how.targets,
            source=source,
            summary=summarize((), source),
            exit_code=exit_code((), plan.gate, source),
        ),
        scanned,
    )
