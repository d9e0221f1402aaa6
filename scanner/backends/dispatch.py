"""Where the dispatcher sends an op on a backend: asked of torch itself, without running it."""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["Route", "parse_route", "route"]

Route = Literal["kernel", "composite", "default", "cpu", "catch-all", "none"]
"""`kernel`: the backend's own; `composite` and `default`: made of other ops, or one that serves
every backend; `cpu`: registered to run on the CPU, always; `catch-all`: what the backend does with
ops that it lacks, on MPS to raise or, with PYTORCH_ENABLE_MPS_FALLBACK, to run on the CPU."""

_KEYS = {"mps": "MPS", "cuda": "CUDA"}
_KINDS: dict[str, Route] = {
    "kernel": "kernel",
    "math kernel": "composite",
    "default backend kernel": "default",
    "backend fallback": "catch-all",
}
_FALLBACK_FILE = "MPSFallback.mm"


def route(op: str, backend: str) -> Route | None:
    """The route of `aten::mm` on `mps` or `cuda`; None for a device that has no key of its own."""
    key = _KEYS.get(backend)
    if key is None:
        return None
    import torch

    return parse_route(torch._C._dispatch_dump_table(op), key)


def parse_route(table: str, key: str) -> Route:
    """The route that a dumped dispatch table gives a key.

    Lines read `MPS: registered at FILE:LINE [KIND]`, as torch's OperatorEntry.cpp writes them.
    """
    line = re.search(rf"^{key}: (?P<where>.*) \[(?P<kind>[\w ]+)\]$", table, re.MULTILINE)
    if line is None or line["kind"] not in _KINDS:
        return "none"
    kind = _KINDS[line["kind"]]
    return "cpu" if kind == "kernel" and _FALLBACK_FILE in line["where"] else kind
