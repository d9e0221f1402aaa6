"""The files of a git revision, in a directory of their own: the user's checkout is not touched."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from scanner.errors import UsageError

__all__ = ["Revision", "files_at"]

_FOREIGN = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"})
"""Set by git for its hooks; they would lead away from the repository of the working directory."""


@dataclass(frozen=True, kw_only=True)
class Revision:
    """A revision's files, as they lie while they are needed."""

    name: str
    """`main (1a2b3c4)`."""
    top: Path
    """Of the user's checkout."""
    root: Path
    """Of the files."""
    cwd: Path
    """What corresponds to the user's working directory; it may not exist."""

    def moved(self, text: str) -> str:
        """A path in the checkout, or a list of paths, as it is called here."""
        here = str(self.top)
        parts = text.split(":")
        return ":".join(
            str(self.root) + part[len(here) :]
            if part == here or part.startswith(f"{here}/")
            else part
            for part in parts
        )


@contextmanager
def files_at(ref: str, cwd: Path, environ: Mapping[str, str]) -> Iterator[Revision]:
    """The files of `ref` in the repository of `cwd`, for as long as the context lasts.

    Raises `UsageError` where there is no repository or no such revision. Neither the checkout, nor
    its index, nor the repository is written to.
    """
    ours = {name: text for name, text in environ.items() if name not in _FOREIGN}
    cwd = cwd.resolve()
    top = Path(
        _git(["rev-parse", "--show-toplevel"], cwd, ours, f"{cwd} is not in a git repository")
    )
    asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"]
    commit = _git(asked, cwd, ours, f"there is neither a file nor a git revision {ref!r}")
    with TemporaryDirectory(prefix="opscan-") as folder:
        root = Path(folder).resolve() / "files"
        index = ours | {"GIT_INDEX_FILE": str(root.with_name("index"))}
        failed = f"the files of {ref} cannot be read"
        _git(["read-tree", commit], top, index, failed)
        _git(["checkout-index", "--all", "--quiet", f"--prefix={root}/"], top, index, failed)
        below = cwd.relative_to(top.resolve())
        yield Revision(name=f"{ref} ({commit[:7]})", top=top, root=root, cwd=root / below)


def _git(arguments: Sequence[str], cwd: Path, environ: Mapping[str, str], failed: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd, env=environ, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise UsageError("git is not installed", remedy="Compare with a saved report.") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise UsageError(
            f"{failed}{f': {said[-1]}' if said else ''}",
            remedy="Name a report written with -f json, or a branch, tag or commit; "
            "what a shallow clone lacks must be fetched first.",
        )
    return done.stdout.strip()
