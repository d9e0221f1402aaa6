"""Routes read from dispatch tables as torch prints them."""

from __future__ import annotations

import pytest

from scanner.backends.dispatch import parse_route, route

TABLE = """\
Undefined: registered at /pytorch/build/aten/src/ATen/RegisterCompositeImplicit.cpp:1 [math kernel]
CPU: registered at /pytorch/build/aten/src/ATen/RegisterCPU.cpp:3234 [kernel]
CUDA: registered at /pytorch/build/aten/src/ATen/RegisterCUDA.cpp:1 [default backend kernel]
{line}
AutogradMPS: registered at /pytorch/aten/src/ATen/RegisterMPS.cpp:1 [kernel]
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("registered at /aten/src/ATen/RegisterMPS_0.cpp:7191 [kernel]", "kernel"),
        ("registered at /aten/src/ATen/mps/MPSFallback.mm:95 [kernel]", "cpu"),
        ("registered at /aten/src/ATen/mps/MPSFallback.mm:75 [backend fallback]", "catch-all"),
        ("registered at RegisterComposite.cpp:52 [math kernel]", "composite"),
        ("registered at RegisterX.cpp:1 [default backend kernel]", "default"),
        ("unboxed kernel of another kind [something new]", "none"),
        ("", "none"),
    ],
)
def test_routes(line: str, expected: str) -> None:
    assert parse_route(TABLE.format(line=f"MPS: {line}" if line else ""), "MPS") == expected


def test_the_installed_torch_is_read() -> None:
    assert route("aten::linear", "mps") == "composite"
    assert route("aten::mm", "cuda") in {"kernel", "default"}
    assert route("aten::mm", "cpu") is None
    assert route("aten::no_such_op", "mps") == "none"
