"""The scripts that shells load, and what they are answered."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scanner.cli.main import COMMANDS
from tests.cli.conftest import Invoke
from tests.cli.test_startup import HEAVY, ROOT, SLOW, modules_of


@pytest.fixture
def complete(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> object:
    """What zsh is offered for a command line whose last word is not finished."""

    def ask(line: str) -> list[str]:
        monkeypatch.setenv("_OPSCAN_COMPLETE", "zsh_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        words = len(line.split()) + line.endswith(" ")
        monkeypatch.setenv("COMP_CWORD", str(words - 1))
        found = invoke()
        assert (found.code, found.err) == (0, "")
        return found.out.splitlines()[1::3]

    return ask


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(invoke: Invoke, shell: str) -> None:
    found = invoke("completion", shell)
    assert (found.code, found.err) == (0, "")
    assert f"_OPSCAN_COMPLETE={shell}_complete" in found.out
    if program := shutil.which(shell):
        subprocess.run([program, "-n", "-c", found.out], check=True, timeout=20)


def test_other_shells_are_2(invoke: Invoke) -> None:
    assert invoke("completion", "powershell").code == 2


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("opscan expl", ["explain"]),
        ("opscan scan m.py --fail-on ", ["error", "warning", "never"]),
        ("opscan m.py --fail", ["--fail-on"]),
        ("opscan m.py --target torch==2.9.", ["torch==2.9.1", "torch==2.9.0"]),
        ("opscan m.py -f js", ["json", "jsonl"]),
        ("opscan m.py --report conc", ["concise="]),
        ("opscan explain OPS80", ["OPS801", "OPS802", "OPS803", "OPS804", "OPS805"]),
        ("opscan explain cpu-f", ["cpu-fallback"]),
        ("opscan explain aten::kthv", ["aten::kthvalue", "aten::kthvalue.values"]),
        ("opscan db op aten::kthv", ["aten::kthvalue", "aten::kthvalue.values"]),
        ("opscan baseline wr", ["write"]),
        ("opscan mod", ["mod"]),
    ],
)
def test_what_is_offered(complete, line: str, expected: list[str]) -> None:  # type: ignore[no-untyped-def]
    assert complete(line) == expected


def test_every_command_is_offered(complete) -> None:  # type: ignore[no-untyped-def]
    assert set(complete("opscan ")) == set(COMMANDS)


@pytest.mark.parametrize("words", ["opscan explain OPS80", "opscan explain aten::kthv"])
def test_nothing_slow_is_imported(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setenv("_OPSCAN_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", "2")
    code, modules, out = modules_of()
    assert (code, bool(out)) == (0, True)
    assert not {name.split(".")[0] for name in modules} & set(HEAVY)
    assert not modules & set(SLOW)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("explain aten :: kthv", "kthvalue kthvalue.values"),
        ("explain aten ::", ""),
        ("m.py --target torch == 2.9.", "2.9.1 2.9.0"),
        ("explain OPS80", "OPS801 OPS802 OPS803 OPS804 OPS805"),
    ],
)
def test_bash_breaks_words_at_colons(
    invoke: Invoke, tmp_path: Path, words: str, expected: str
) -> None:
    script = tmp_path / "complete.sh"
    script.write_text(invoke("completion", "bash").out)
    program = tmp_path / "opscan"
    program.write_text(
        f"#!/bin/sh\nPYTHONPATH={ROOT} exec {shlex.quote(sys.executable)} -m scanner\n"
    )
    program.chmod(0o755)
    ask = (
        f"source {script}; COMP_WORDS=(opscan {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1));"
        f' _opscan_completion {program}; echo "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, timeout=60)
    if expected:
        assert done.stdout.split() == expected.split()
    else:
        assert "abs" in done.stdout.split()
