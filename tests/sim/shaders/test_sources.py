"""Metal sources that a release compiles at run time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scanner.sim.shaders.executor import Executor
from scanner.sim.shaders.results import Findings, Ran
from scanner.sim.shaders.sources import Sources, UncompilableError, adapt
from tests.sim.shaders.air import bind, launch

GATHER = """
template<typename Y, typename X> Y cast(const X x);
template<> int cast<int, half>(const half x) { return (x); }

kernel void gather(uint i [[thread_position_in_grid]],
                   constant void * src_ [[buffer(0)]],
                   device void * dst_ [[buffer(1)]],
                   constant packed_uint3 & stride [[buffer(2)]],
                   constant uint32_t & numel [[buffer(4)]]) {
    if (i >= numel) return;
    constant half * src = (constant half *)src_;
    device int * dst = (device int *)dst_;
    packed_uint3 at;
    at.x = i / 2; at.y = i % 2; at.z = 0;
    const packed_uint3 found = at * stride;
    dst[i] = cast<int>(src[found.x + found.y + found.z]);
}
kernel void other(device int * out [[buffer(0)]]) { out[0] = 1; }
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return Sources(tmp_path_factory.mktemp("sources"))


def test_a_source_is_compiled_and_run(sources: Sources, tmp_path: Path) -> None:
    """dst[2a + b] = src[a + 3b]: a transposed view of two rows of three, cut to four elements."""
    code = sources.bitcode(GATHER, "gather")
    given = np.arange(6, dtype=np.float16)
    out = np.zeros(6, np.int32)
    stride, numel = np.array([1, 3, 0], np.uint32), np.array([4], np.uint32)
    bindings = [bind(0, given), bind(1, out), bind(2, stride), bind(4, numel)]
    with Executor(None, tmp_path, workers=1) as executor:
        assert isinstance(executor.run(launch("gather", 8, 4, *bindings), str(code)), Ran)
        assert out.tolist() == [0, 3, 1, 4, 0, 0]
        numel[0] = 8
        found = executor.run(launch("gather", 8, 4, *bindings), str(code))
        assert isinstance(found, Findings)
        assert [(f.kind, f.name, f.count, f.offset) for f in found.findings] == [
            ("read", "src_", 1, 12),
            ("write", "dst_", 2, 24),
        ]


def test_what_was_compiled_is_kept(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    made = sources.bitcode(GATHER, "gather")
    monkeypatch.setattr("scanner.sim.shaders.sources._compiled", None)
    assert sources.bitcode(GATHER, "gather") == made


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("kernel void k(device int * a [[buffer(0)]]) { threadgroup int x[4]; }", "threadgroup"),
        ("#include <metal_stdlib>\n", "metal_stdlib"),
        ("template <typename T> kernel void j(device T * a [[buffer(0)]]) {}", "error|spell"),
        ("kernel void k(device int * a) { a[0] = 1; }", "no attribute"),
    ],
)
def test_what_is_refused(sources: Sources, source: str, reason: str) -> None:
    for _ in range(2):
        with pytest.raises(UncompilableError, match=reason):
            sources.bitcode(source, "k")


def test_the_air_style_of_compiled_code() -> None:
    """Numbers become names, the first block gets its label, pointers their address spaces."""
    compiled = (
        'target triple = "x"\n\ndefine void @k(i32 noundef %0, ptr noundef %1) #0 {\n'
        "  %3 = icmp eq i32 %0, 7\n  br i1 %3, label %4, label %5\n\n"
        "4:                    ; preds = %2\n  store i32 %0, ptr %1\n  br label %5\n\n"
        "5:\n  ret void\n}\n"
    )
    source = (
        "kernel void k(uint i [[ thread_position_in_grid ]], device int * out [[buffer(3)]]) {}"
    )
    text = adapt(compiled, source, "k")
    assert "define void @k(i32 %v0, ptr addrspace(1) %given1) {\nv2:\n" in text
    assert "%v1 = addrspacecast ptr addrspace(1) %given1 to ptr" in text
    assert "br i1 %v3, label %v4, label %v5" in text
    assert "\nv4: " in text
    assert '!"air.buffer", !"air.location_index", i32 3, i32 1' in text
    with pytest.raises(UncompilableError, match="one by one"):
        adapt(compiled, source.replace("uint i [[ thread_position_in_grid ]], ", ""), "k")
