from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("unicorn")
pytest.importorskip("llvmlite")

from tests.sim.bench import Bench, Objects, new_bench, new_objects


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = new_bench()
    yield made
    made.memory.close()


@pytest.fixture
def objects() -> Iterator[Objects]:
    made = new_objects()
    yield made
    made.bench.memory.close()
