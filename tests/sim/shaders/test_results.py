from __future__ import annotations

import pytest

from scanner.sim.shaders.results import Finding


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (Finding(kind="division", count=2), "divides an integer by zero (2 times)"),
        (
            Finding(kind="write", name="@local", count=1, offset=64),
            "writes outside array @local at byte 64",
        ),
        (
            Finding(kind="read", count=1, offset=8),
            "reads outside memory it has no buffer for at byte 8",
        ),
        (
            Finding(kind="read", argument=1, name="input", count=3, offset=12, length=12),
            "reads outside buffer 1 (input, 12 bytes) at byte 12 (3 times)",
        ),
        (
            Finding(
                kind="write", argument=0, name="out", count=1, offset=8, length=10, inside=True
            ),
            "writes past the end of buffer 0 (out, 10 bytes), inside its allocation, at byte 8",
        ),
    ],
)
def test_a_finding_in_words(finding: Finding, words: str) -> None:
    assert str(finding) == words
