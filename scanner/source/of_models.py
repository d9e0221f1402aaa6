"""Source rules beside a scan that captures models: about their files and what these import."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from scanner.locate.interface import Source
from scanner.records import Finding, ModelReport, SourceScan, Target
from scanner.source.discover import SourceFile, shown
from scanner.source.local import with_local_imports
from scanner.source.scan import SourcePlan, scan_files

__all__ = ["source_of_models"]

_BY_NAME = frozenset({"OPS680", "OPS681"})
_NOT_READ = frozenset({"OPS903", "OPS906"})


def source_of_models(
    located: Iterable[object],
    models: Sequence[ModelReport],
    targets: Sequence[Target],
    cwd: Path,
) -> SourceScan | None:
    """Findings about the files of what was located, and the user's own modules that they import.

    None when nothing located is a file. Where an op was captured, its configuration was judged, and
    calls are not judged by name.
    """
    files = [each.path for each in located if isinstance(each, Source) and each.path is not None]
    if not files:
        return None
    paths = with_local_imports(files, cwd)
    sources = [SourceFile(str(path), shown(str(path), str(cwd)), False) for path in paths]
    scanned = scan_files(sources, SourcePlan(targets=tuple(targets))).source
    judged = _judged_lines(models)
    findings = tuple(each for each in scanned.findings if not _is_known(each, judged))
    return replace(scanned, findings=findings, roots=tuple(file.name for file in sources))


def _judged_lines(models: Sequence[ModelReport]) -> frozenset[tuple[str, int]]:
    places = (place for model in models for row in model.ops for place in row.locations)
    return frozenset((place.file, place.line) for place in places)


def _is_known(finding: Finding, judged: frozenset[tuple[str, int]]) -> bool:
    """Whether the models' own findings say it: of captured calls, and of files not loaded."""
    if finding.rule in _NOT_READ:
        return True
    place = finding.location
    if finding.rule not in _BY_NAME or place is None:
        return False
    lines = range(place.line, (place.end_line or place.line) + 1)
    return any((place.file, line) in judged for line in lines)
