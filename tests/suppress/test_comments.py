from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.suppress.comments import ignores_in


def read(text: str) -> list[tuple[int, int, tuple[str, ...], str]]:
    return [
        (each.line, each.covers, each.rules, each.reason) for each in ignores_in(text, "model.py")
    ]


def test_on_the_line_and_on_a_line_above() -> None:
    assert read(
        "x = f(x)  # opscan: ignore[OPS102] small\n"
        "# opscan: ignore[ops101, OPS104] two of them\n"
        "# another comment\n"
        "\n"
        "y = g(\n"
        "    x,\n"
        ")  # opscan: ignore[OPS103]: the end of a call\n"
    ) == [
        (1, 1, ("OPS102",), "small"),
        (2, 5, ("OPS101", "OPS104"), "two of them"),
        (7, 7, ("OPS103",), "the end of a call"),
    ]


@pytest.mark.parametrize(
    ("line", "rules", "reason"),
    [
        ("#opscan:ignore[OPS1]why", ("OPS1",), "why"),
        ("# opscan: ignore[OPS102] - once", ("OPS102",), "once"),
        ("# opscan: ignore[OPS102]", ("OPS102",), ""),
        ("# opscan: ignore[OPS102] :", ("OPS102",), ""),
        ("# opscan: ignore because", (), "because"),
        ("# noqa: E501  # opscan: ignore[OPS102] once", ("OPS102",), "once"),
        ("# opscan: ignore[OPS102] see #12  # type: ignore[x]", ("OPS102",), "see #12"),
        ("# opscan: ignore[] because", (), "because"),
        ("# opscan: IGNORE [ops102] once", ("OPS102",), "once"),
    ],
)
def test_spellings(line: str, rules: tuple[str, ...], reason: str) -> None:
    assert read(f"x = 1  {line}\n") == [(1, 1, rules, reason)]


@pytest.mark.parametrize(
    "text",
    [
        "x = '# opscan: ignore[OPS102] in a string'\n",
        "'''\n# opscan: ignore[OPS102] in a docstring\n'''\n",
        "x = 1  # opscan: ignored[OPS102] x\n",
        "x = 1  # see opscan: ignore[OPS102] x\n",
        "opscan: int = 1\n",
        "",
    ],
)
def test_what_is_no_ignore(text: str) -> None:
    assert read(text) == []


def test_a_file_that_cannot_be_tokenized_is_read_as_far_as_it_goes() -> None:
    text = "x = 1  # opscan: ignore[OPS102] known\ny = (\n"
    assert read(text) == [(1, 1, ("OPS102",), "known")]
    assert read("x = 1\n# opscan: ignore[OPS102] at the end") == [(2, 2, ("OPS102",), "at the end")]


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    ignores_in(f"{text}\n# opscan: ignore[OPS102] x\n", "model.py")
