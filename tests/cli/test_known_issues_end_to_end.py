"""One small model of each family, scanned for releases whose issue it meets.

What a scan records is not always what a model calls: an entry that names the wrong one of the two
is silent, and no test of the data alone would see it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

MODELS = """
import torch
import torch.nn.functional as F
from torch import nn, randn

class Conv3d(nn.Conv3d):
    def __init__(self): super().__init__(1, 2, 2)
    def forward(self, x=randn(1, 1, 4, 4, 4)): return super().forward(x)

class Transposed3d(nn.ConvTranspose3d):
    def __init__(self): super().__init__(1, 2, 2)
    def forward(self, x=randn(1, 1, 4, 4, 4)): return super().forward(x)

class HalfTransposed3d(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.ConvTranspose3d(1, 2, 2).half()
    def forward(self, x=randn(1, 1, 4, 4, 4)): return self.layer(x.half())

class LongConv1d(nn.Conv1d):
    def __init__(self): super().__init__(1, 1, 3)
    def forward(self, x=randn(1, 1, 70000)): return super().forward(x)

class Pooling(nn.Module):
    def forward(self, x=randn(1, 2, 7, 7)): return F.adaptive_avg_pool2d(x, 3)

class Linear(nn.Module):
    def forward(self, x=randn(2, 4)): return F.linear(x.long(), x.long())

class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(4, 6, proj_size=2)
    def forward(self, x=randn(3, 2, 4)): return self.layer(x)[0]

class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LayerNorm(8)
    def forward(self, x=randn(2, 8)): return self.layer(x.half())

class Attention(nn.Module):
    def forward(self, q=randn(1, 2, 9, 8), v=randn(1, 2, 9, 16)):
        return F.scaled_dot_product_attention(q, q, v)

class Conjugate(nn.Module):
    def forward(self, x=randn(2, 4)): return torch.complex(x, x).conj().imag
"""
OLD, MIDDLE, NEW = "torch==2.2.2", "torch==2.5.1", "torch==2.9.1,macos=15.0"
ISSUES = {
    ("Conv3d", OLD): "conv3d-missing",
    ("Transposed3d", OLD): "conv-transpose3d-missing",
    ("Transposed3d", MIDDLE): "conv-transpose3d-missing",
    ("HalfTransposed3d", NEW): "conv-transpose3d-half",
    ("LongConv1d", MIDDLE): "conv-output-65536",
    ("LongConv1d", NEW): "conv-output-65536-macos-15-0",
    ("Pooling", NEW): "adaptive-avg-pool-indivisible",
    ("Linear", OLD): "linear-integer",
    ("Linear", NEW): "linear-integer",
    ("Lstm", MIDDLE): "lstm-projection",
    ("Norm", NEW): "layer-norm-mixed-dtypes",
    ("Attention", MIDDLE): "sdpa-value-head-size",
    ("Attention", NEW): "sdpa-value-head-size",
    ("Conjugate", NEW): "imag-of-lazy-conjugate",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, str, str]]:
    """Model, target and message of every finding that does not merely note something."""
    folder = tmp_path_factory.mktemp("families")
    (folder / "models.py").write_text(MODELS)
    targets = [word for target in (OLD, MIDDLE, NEW) for word in ("--target", target)]
    command = (sys.executable, "-m", "scanner", "models.py", "--mode", "infer", *targets)
    done = subprocess.run(
        (*command, "--format", "json"),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return set(_findings(json.loads(done.stdout)))


def _findings(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (model["name"], finding["target"], finding["message"])
        for model in report["models"]
        for finding in model["findings"]
        if finding["severity"] != "note"
    ]


@pytest.mark.parametrize(("model", "target"), ISSUES)
def test_the_family_s_issue_is_found(
    model: str, target: str, found: set[tuple[str, str, str]]
) -> None:
    said = [message for name, on, message in found if (name, on) == (model, target)]
    assert any(f"[{ISSUES[model, target]}]" in message for message in said)


def test_what_the_newest_release_takes_is_silent(found: set[tuple[str, str, str]]) -> None:
    assert not [m for name, on, m in found if name in ("Conv3d", "Transposed3d") and on == NEW]
