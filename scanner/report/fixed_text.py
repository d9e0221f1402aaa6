"""What `opscan fix` has to say: a diff, what was fixed, what is left."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from scanner.records import Finding
from scanner.report.words import clean, count, join

__all__ = ["diff_text", "fixed_counts", "fixed_text", "left_text"]

_LINES = re.compile(r"[^\n]*\n|[^\n]+")


def diff_text(name: str, old: str, new: str) -> str:
    """A unified diff that `patch -p0` can apply."""
    diff = difflib.unified_diff(_LINES.findall(old), _LINES.findall(new), name, name)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in diff
    )


def fixed_counts(before: Iterable[Finding], after: Iterable[Finding]) -> Counter[str]:
    """Rule → findings that are gone, of those that offered a correction.

    Others may be gone as well: some rules are silent in a file that mentions MPS.
    """
    corrected = Counter(each.rule for each in before if each.fix is not None)
    return corrected - Counter(each.rule for each in after)


def fixed_text(files: Sequence[tuple[str, Counter[str]]], *, would: bool) -> str:
    """One line for each changed file, given as its name and what is gone from it."""
    verb = "would be fixed" if would else "fixed"
    return "".join(
        f"{clean(name)}: {_rules(counts) or 'nothing counted'} {verb}\n" for name, counts in files
    )


def left_text(fixed: int, files: int, left: Sequence[Finding], *, would: bool, unsafe: bool) -> str:
    """The summary, one line."""
    verb = "would be fixed" if would else "fixed"
    head = f"{count(fixed, 'finding')} {verb} in {count(files, 'file')}"
    if not left:
        return f"{head}; nothing is left.\n"
    severities = Counter(finding.severity for finding in left)
    kinds = [count(severities[each], each) for each in ("error", "warning", "note")]
    kinds = [text for text in kinds if not text.startswith("0 ")]
    more = 0 if unsafe else sum(bool(each.fix and not each.fix.safe) for each in left)
    hint = f"; --unsafe offers fixes for {more} of them" if more else ""
    return f"{head}; {join(kinds)} left{hint}.\n"


def _rules(counts: Counter[str]) -> str:
    return ", ".join(
        f"{rule} x{number}" if number > 1 else rule for rule, number in sorted(counts.items())
    )
