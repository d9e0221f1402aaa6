"""What a report can tell: an ignore is unused, a finding fixed, only where it was looked for."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from scanner.judge.rules import about_issues, about_ops
from scanner.judge.rules.measured import RULES as MEASURED
from scanner.judge.rules.measured import VARIANT_RULES
from scanner.judge.rules.whole import RULES as WHOLE
from scanner.records import ModelReport, OpReport, Report
from scanner.suppress.interface import Entry, Ignore

__all__ = ["Reach", "label_of", "matches_file", "matches_model", "matches_op"]

_JUDGED = frozenset(rule.id for rule in (*about_ops, *about_issues))
_MEASURED = frozenset(rule.id for rule in MEASURED)
_VARIANTS = frozenset(rule.id for rule in VARIANT_RULES)
_WHOLE = frozenset(rule.id for rule in WHOLE)


def label_of(model: ModelReport) -> str:
    """What to scan for this model alone: `nets/gp.py:ExactGP`."""
    return f"{model.source}:{model.entry}" if model.entry else model.source


class Reach:
    """Which rules were asked, about what."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._rows: dict[tuple[str, int], list[tuple[ModelReport, OpReport]]] = {}
        for model in report.models:
            for row in model.ops:
                for place in row.locations:
                    self._rows.setdefault((place.file, place.line), []).append((model, row))

    def of_line(self, rule: str, file: str, line: int) -> bool:
        """Whether a rule was asked about a line of code."""
        if rule.startswith("OPS6"):
            return self.reads(file)
        return any(_asked(rule, model, [row]) for model, row in self._rows.get((file, line), ()))

    def of_entry(self, entry: Entry) -> bool:
        """Whether a finding of a baseline would have been found again, were it still there."""
        if not entry.model:
            return self.reads(entry.file)
        return any(
            model.capture is not None and model.capture.complete and _asked(entry.rule, model)
            for model in self._report.models
            if label_of(model) == entry.model
        )

    def of_ignore(self, ignore: Ignore, prefix: str) -> bool:
        """Whether an ignore of the settings would have found what it is about.

        One that names neither a file nor a model is about the whole project, of which the report
        may be a part: then only where the op that it names was run.
        """
        if ignore.rule and ignore.rule.startswith("OPS6"):
            return ignore.file is not None and self._reads_like(prefix, ignore.file)
        models = [model for model in self._report.models if matches_model(model, ignore.model)]
        if ignore.target is not None:
            pattern = ignore.target
            if not any(fnmatchcase(each.id, pattern) for each in self._report.targets):
                return False
        if ignore.op is None and ignore.file is None and ignore.model is None:
            return False
        return any(
            _asked(ignore.rule, model, rows)
            for model in models
            if (rows := [row for row in model.ops if _about(row, ignore, prefix)])
        )

    def reads(self, file: str) -> bool:
        """Whether source rules have read a file."""
        roots = self._report.source.roots if self._report.source else ()
        return any(root in (".", file) or file.startswith(f"{root}/") for root in roots)

    def _reads_like(self, prefix: str, pattern: str) -> bool:
        source = self._report.source
        roots = source.roots if source else ()
        return any(matches_file(prefix + root, pattern) for root in roots)


def matches_file(path: str, pattern: str) -> bool:
    """`*` matches `/` too; a pattern without `/` is about the file's name.

    `./nets/*.py` is `nets/*.py`, and `**/a.py` is about the top directory too, as in other tools.
    """
    pattern = pattern.removeprefix("./")
    if pattern.startswith("**/") and fnmatchcase(path, pattern.removeprefix("**/")):
        return True
    if "/" not in pattern and fnmatchcase(path.rpartition("/")[2], pattern):
        return True
    return fnmatchcase(path, pattern)


def matches_op(op: str, pattern: str) -> bool:
    """A pattern without an overload means all of them."""
    return fnmatchcase(op, pattern) or fnmatchcase(op.partition(".")[0], pattern)


def matches_model(model: ModelReport, pattern: str | None) -> bool:
    """By the model's name, or by file and name as one scans it; None is about all."""
    names = (model.name, model.entry, label_of(model))
    return pattern is None or any(fnmatchcase(name, pattern) for name in names)


def _about(row: OpReport, ignore: Ignore, prefix: str) -> bool:
    if ignore.file is None:
        return ignore.op is None or ignore.model is not None or matches_op(row.op, ignore.op)
    return any(matches_file(prefix + place.file, ignore.file) for place in row.locations)


def _asked(rule: str | None, model: ModelReport, rows: Iterable[OpReport] | None = None) -> bool:
    """Whether the stage that applies a rule has looked at any of the rows."""
    rows = model.ops if rows is None else rows
    if rule is None or rule in _JUDGED:
        return any(True for _ in rows)
    if rule in _MEASURED:
        return any(_answered(row) for row in rows)
    if rule in _VARIANTS:
        return any(row.variants for row in rows)
    return rule in _WHOLE and model.accumulated is not None and not model.accumulated.incomplete


def _answered(row: OpReport) -> bool:
    measured = [*([row.measurement] if row.measurement else []), *row.simulations.values()]
    return any(each.status not in {"unknown", "skipped"} for each in measured)
