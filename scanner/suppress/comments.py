"""Comments `# opscan: ignore[OPS102] reason`, read from source text without running it."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator

from scanner.records import LineIgnore, Report

__all__ = ["MARK", "files_of", "ignores_in", "line_ignores"]

MARK = "opscan:"
"""A file without it has no ignores, and is not looked at further."""
_COMMENT = re.compile(r"#\s*opscan:\s*ignore\b(?:\s*\[(?P<rules>[^\]]*)\])?(?P<reason>.*)")
_NO_CODE = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    | {tokenize.ENCODING, tokenize.ENDMARKER}
)


def line_ignores(
    report: Report, read: Callable[[str], str | None], more: Iterable[str] = ()
) -> tuple[LineIgnore, ...]:
    """Every ignore in the files that a report speaks of, and in `more`.

    `read` gives the text of a file as the report names it, None where there is none.
    """
    files = sorted(files_of(report) | set(more))
    texts = ((file, read(file)) for file in files)
    return tuple(each for file, text in texts if text for each in ignores_in(text, file))


def files_of(report: Report) -> frozenset[str]:
    """Files with code that was run or reported, as the report names them."""
    places = [place for model in report.models for row in model.ops for place in row.locations]
    findings = [each for model in report.models for each in model.findings]
    findings += report.source.findings if report.source else ()
    places += [each.location for each in findings if each.location is not None]
    named = {place.file for place in places} | {model.source for model in report.models}
    return frozenset(file for file in named if file.endswith((".py", ".pyw")))


def ignores_in(text: str, file: str) -> tuple[LineIgnore, ...]:
    """The ignores of one file, in order of lines.

    A comment with a line of its own is about the next line that has code. What Python cannot
    tokenize is read as far as it can.
    """
    if MARK not in text:
        return ()
    comments: list[tuple[int, str]] = []
    code: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                comments.append((token.start[0], token.string))
            elif token.type not in _NO_CODE:
                code.update(range(token.start[0], token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        pass
    return tuple(_parsed(comments, sorted(code), file))


def _parsed(
    comments: Iterable[tuple[int, str]], code: list[int], file: str
) -> Iterator[LineIgnore]:
    from bisect import bisect_left

    for line, comment in comments:
        if (found := _COMMENT.match(comment)) is None:
            continue
        index = bisect_left(code, line)
        rules = (found["rules"] or "").split(",")
        yield LineIgnore(
            file=file,
            line=line,
            covers=code[index] if index < len(code) else line,
            rules=tuple(rule.strip().upper() for rule in rules if rule.strip()),
            reason=found["reason"].strip(" \t:-–—"),
            code=comment,
        )
