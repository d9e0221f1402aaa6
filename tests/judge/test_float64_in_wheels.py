"""The evidence for OPS104: every release's own library refuses float64 on MPS."""

from __future__ import annotations

import zipfile

import pytest

from opdb import query, store
from opdb.build.download import cache, wheel
from scanner.judge.verdicts import FLOAT64_MESSAGE


@pytest.mark.wheels
@pytest.mark.parametrize("release", query.releases())
def test_the_library_holds_the_message(release: str) -> None:
    name, digest, *_ = store.default.provenance[release]
    path, _ = wheel(release, cache(), (name, digest))
    library = zipfile.ZipFile(path).read("torch/lib/libtorch_cpu.dylib")
    assert FLOAT64_MESSAGE.encode() in library
