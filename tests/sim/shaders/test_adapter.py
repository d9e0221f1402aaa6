from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from scanner.sim import executors
from scanner.sim.shaders.adapter import Shaders, sentence
from scanner.sim.shaders.results import Finding
from tests.sim.shaders.air import GRID, bind, buffer, elementwise, module, write_library


@pytest.fixture(scope="module")
def shaders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shaders]:
    folder = tmp_path_factory.mktemp("release")
    limited = module(
        "limited", [buffer("out", 0), GRID],
        "  %j = zext i32 %i to i64\n"
        "  %p = getelementptr [64 x float], ptr addrspace(3) @local, i64 0, i64 %j\n"
        "  store float 1.0, ptr addrspace(3) %p\n  ret void",
        top="@local = internal addrspace(3) global [64 x float] undef", max_threads=256,
    )  # fmt: skip
    section = write_library(
        folder / "metal_basic",
        {"abs": elementwise("air.fabs.f32", "float", ["float"], "abs"), "limited": limited},
    )
    shaders = Shaders({"metal_basic": section}, tmp_path_factory.mktemp("cache"), workers=1)
    yield shaders
    shaders.close()


def run(shaders: Shaders, source: executors.KernelSource, *arrays: np.ndarray) -> executors.Answer:
    bindings = tuple(bind(i, a) for i, a in enumerate(arrays))
    return shaders.run(executors.Launch(source, (4, 1, 1), (4, 1, 1), "threads", bindings))


def test_runs_and_tells_what_went_wrong(shaders: Shaders) -> None:
    out, given = np.zeros(4, np.float32), -np.ones(4, np.float32)
    source = executors.KernelSource("abs", "metal_basic")
    assert run(shaders, source, out, given) == executors.Done()
    assert out.tolist() == [1, 1, 1, 1]
    answer = run(shaders, executors.KernelSource("abs"), out, given[:3])
    assert answer == executors.Done(("reads outside buffer 1 (in0, 12 bytes) at byte 12",))


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (executors.KernelSource("k", source="kernel void k() {}"), "compiled at run time"),
        (executors.KernelSource("abs", "metal_basic", None, ((0, "bool", 1),)), "constants"),
        (executors.KernelSource("abs", "metal_40"), "no library 'metal_40'"),
        (executors.KernelSource("other", "metal_basic"), "other: the library has no such kernel"),
    ],
)
def test_refuses_with_the_reason(
    shaders: Shaders, source: executors.KernelSource, reason: str
) -> None:
    answer = run(shaders, source)
    assert isinstance(answer, executors.NotExecutable)
    assert reason in answer.reason
    assert shaders.limits(source) == executors.PipelineLimits()


def test_limits(shaders: Shaders) -> None:
    assert shaders.limits(executors.KernelSource("limited")) == executors.PipelineLimits(256, 256)
    assert shaders.limits(executors.KernelSource("abs")) == executors.PipelineLimits(None, 0)


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (Finding(kind="division", count=2), "divides an integer by zero (2 times)"),
        (Finding(kind="write", name="@local", count=1, offset=64),
         "writes outside array @local at byte 64"),
        (Finding(kind="read", count=1, offset=8),
         "reads outside memory it has no buffer for at byte 8"),
    ],
)  # fmt: skip
def test_sentences(finding: Finding, words: str) -> None:
    assert sentence(finding) == words
