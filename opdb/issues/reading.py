"""Reads the files of known issues."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from opdb.issues.records import Issue, IssueFile

__all__ = ["IssueDataError", "read_file", "read_folder"]


class IssueDataError(Exception):
    """A file that is not as `IssueFile` has it."""


def read_folder(folder: Path) -> tuple[tuple[Issue, Mapping[str, Any]], ...]:
    """Issues of all files, each with its file's constants."""
    return tuple(
        (issue, file.constants)
        for path in sorted(folder.glob("*.toml"))
        for file in (read_file(path),)
        for issue in file.issue
    )


def read_file(path: Path) -> IssueFile:
    """One file; IssueDataError names it and what is wrong in it."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=IssueFile)
    except msgspec.DecodeError as error:
        raise IssueDataError(f"{path.name}: {error}") from error
