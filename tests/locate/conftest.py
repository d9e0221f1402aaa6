"""A user's project in a temporary directory, located in this process on meta tensors."""

from __future__ import annotations

import dataclasses
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from scanner.locate.find import candidates
from scanner.locate.interface import Found, LocateOptions, Subject
from scanner.locate.load import load
from scanner.locate.resolve import resolve

HEADER = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


@dataclasses.dataclass
class Project:
    """Files of a user, and what opscan finds in them."""

    root: Path

    def write(self, name: str, text: str) -> Path:
        """Writes a file as it stands, without the indentation of the test around it."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        return path

    def torch_file(self, text: str, name: str = "model.py") -> Path:
        """Writes a file below three lines of the usual imports."""
        return self.write(name, HEADER + textwrap.dedent(text).lstrip("\n"))

    def find(self, argument: str = "model.py", **options: Any) -> Found:
        """Loads the only source of an argument and finds its models."""
        (source,) = resolve(argument, self.root)
        with torch.device("meta"):
            return candidates(load(source, self.root), source, LocateOptions(**options))

    def build(self, argument: str = "model.py", **options: Any) -> Subject:
        """The subject of the only candidate."""
        (candidate,) = self.find(argument, **options).candidates
        with torch.device("meta"):
            return candidate.build()

    def build_real(self, argument: str = "model.py", **options: Any) -> Subject:
        """The subject of the only candidate, with tensors that hold values."""
        (source,) = resolve(argument, self.root)
        found = candidates(load(source, self.root), source, LocateOptions(real=True, **options))
        (candidate,) = found.candidates
        return candidate.build()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project; what loading it does to this interpreter is undone."""
    path, argv, modules = list(sys.path), list(sys.argv), dict(sys.modules)
    yield Project(tmp_path)
    sys.path[:], sys.argv[:] = path, argv
    for name in set(sys.modules) - set(modules):
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(str(tmp_path)):
            del sys.modules[name]


def note(subject: Subject, start: str) -> str:
    """The only note that starts so."""
    (found,) = [text for text in subject.notes if text.startswith(start)]
    return found
