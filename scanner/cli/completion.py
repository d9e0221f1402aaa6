"""`opscan completion SHELL`: the script that a shell loads, and the answers that it asks for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import click
from click.shell_completion import CompletionItem, get_completion_class

__all__ = ["command", "complete"]

_VARIABLE = "_OPSCAN_COMPLETE"
"""Set by the script when it asks, to `SHELL_complete`."""


@click.command("completion", short_help="Print a script that completes opscan's command line.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the completion script of a shell.

    \b
    bash:  eval "$(opscan completion bash)"           in ~/.bashrc, bash 4.4 or later
    zsh:   eval "$(opscan completion zsh)"            in ~/.zshrc
    fish:  opscan completion fish | source            in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None  # one of click's own
    # Not `source()`: for bash that starts one, to ask for its version.
    asking = kind(click.Command("opscan"), {}, "opscan", _VARIABLE)
    sys.stdout.write(f"{asking.source_template % asking.source_vars()}\n")
    return 0


def complete(
    group: click.Group, with_command: Callable[[Sequence[str]], list[str]], asked: str
) -> int:
    """Print what can follow the words that the shell has put into the environment."""
    shell = asked.partition("_")[0]
    kind = get_completion_class(shell)
    if kind is None:
        return 2
    asking = kind(group, {}, "opscan", _VARIABLE)
    words, incomplete = asking.get_completion_args()
    typed = 0
    if shell == "bash":
        words, incomplete, typed = _joined(words, incomplete)
    words = with_command(words) if words else words
    found = asking.get_completions(words, incomplete)
    if not words and not found and not incomplete.startswith("-"):
        found = [CompletionItem(incomplete, type="file")]  # a MODEL of a scan
    for item in found:
        item.value = item.value[typed:]
        sys.stdout.write(f"{asking.format_completion(item)}\n")
    return 0


def _joined(words: list[str], incomplete: str) -> tuple[list[str], str, int]:
    """Words that bash has broken at `:` and `=`, whole; and how much of the last it has already."""
    whole: list[str] = []
    glue = False
    for word in [*words, incomplete]:
        breaks = set(word) <= {":", "="} and word != "" and whole and not whole[-1].startswith("-")
        if breaks or glue:
            whole[-1] += word
        else:
            whole.append(word)
        glue = bool(breaks)
    *before, last = whole
    if last.startswith("-"):
        return before, last, 0
    return before, last, max(last.rfind(":"), last.rfind("=")) + 1
