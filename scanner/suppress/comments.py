"""Comments `# opscan: ignore[OPS102] reason`, read from source text without running it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from scanner.records import LineIgnore, Report

__all__ = ["files_of", "ignores_in", "line_ignores"]

_MARK = "opscan:"
_COMMENT = re.compile(r"#\s*opscan:\s*(?i:ignore)\b(?:\s*\[(?P<rules>[^\]]*)\])?(?P<reason>.*)")
_NEXT = re.compile(r"\s#\s*(?:noqa|type:|pyright:|mypy:|pylint:|ruff:|nosec|fmt:|isort:|pragma:).*")
"""What another tool is told after the reason."""


def line_ignores(texts: Iterable[tuple[str, str]]) -> tuple[LineIgnore, ...]:
    """Every ignore in files, given as name and text."""
    return tuple(each for file, text in texts for each in ignores_in(text, file))


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
    if _MARK not in text:
        return ()
    comments, code = _tokens(text)
    return tuple(_parsed(comments, code, file))


def _tokens(text: str) -> tuple[list[tuple[int, str]], list[int]]:
    """Comments with their lines, and lines that have code."""
    import io
    import tokenize  # most files have no ignores

    quiet = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    comments: list[tuple[int, str]] = []
    code: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                comments.append((token.start[0], token.string))
            elif token.type not in quiet:
                code.update(range(token.start[0], token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        pass
    return comments, sorted(code)


def _parsed(
    comments: Iterable[tuple[int, str]], code: list[int], file: str
) -> Iterator[LineIgnore]:
    for line, comment in comments:
        if (found := _COMMENT.search(comment)) is None:
            continue
        index = bisect_left(code, line)
        rules = (found["rules"] or "").split(",")
        yield LineIgnore(
            file=file,
            line=line,
            covers=code[index] if index < len(code) else line,
            rules=tuple(rule.strip().upper() for rule in rules if rule.strip()),
            reason=_NEXT.sub("", found["reason"]).strip(" \t:-–—"),
            code=comment,
        )
