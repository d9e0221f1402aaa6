from __future__ import annotations

from pathlib import Path

import pytest

from scanner.sim.shaders.native import library_path


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run-time library, built once a test process."""
    return library_path(tmp_path_factory.mktemp("runtime"))
