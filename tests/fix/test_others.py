"""Mixed precision, dtypes."""

from __future__ import annotations

import pytest

from tests.fix.cases import assert_fixed
from tests.fix.test_devices import helper


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.cuda.amp.autocast()", "torch.autocast(device.type)"),
        (
            "torch.cuda.amp.autocast(flag, torch.half, False)",
            "torch.autocast(device.type, enabled=flag, dtype=torch.half, cache_enabled=False)",
        ),
        (
            "torch.cuda.amp.autocast( enabled=flag )",
            "torch.autocast(device.type, enabled=flag )",
        ),
        ("torch.cuda.amp.GradScaler()", "torch.amp.GradScaler(device.type)"),
        (
            "torch.cuda.amp.GradScaler(2.0, enabled=flag)",
            "torch.amp.GradScaler(device.type, 2.0, enabled=flag)",
        ),
    ],
)
def test_mixed_precision_names_its_device(before: str, after: str) -> None:
    assert_fixed(f"import torch\ny = {before}\n", f"import torch\n{helper()}y = {after}\n")


@pytest.mark.parametrize("code", ["torch.cuda.amp.autocast(*flags)", "f(torch.cuda.amp.autocast)"])
def test_mixed_precision_that_cannot_be_told_is_left_alone(code: str) -> None:
    assert_fixed(f"import torch\ny = {code}\n")


def test_imported_names_and_their_calls_change_together() -> None:
    assert_fixed(
        """
        import torch
        from torch.cuda.amp import autocast as ac, GradScaler  # mixed
        scaler = GradScaler(enabled=flag)

        @ac()
        def step():
            with ac(flag, torch.half):  # half
                pass
        """,
        f"""
        import torch
        from torch.amp import autocast as ac, GradScaler  # mixed
{helper().replace(chr(10), chr(10) + " " * 8)}scaler = GradScaler(device.type, enabled=flag)

        @ac(device.type)
        def step():
            with ac(device.type, enabled=flag, dtype=torch.half):  # half
                pass
        """.replace("\n        \n", "\n\n", 1),
    )


@pytest.mark.parametrize(
    "code",
    ["make(autocast)", "autocast = None", "def f(autocast): pass", "autocast(**options)"],
)
def test_an_imported_name_that_is_used_otherwise_is_left_alone(code: str) -> None:
    assert_fixed(f"import torch\nfrom torch.cuda.amp import autocast\n{code}\n")


def test_dtypes_are_narrowed_only_when_unsafe_corrections_are_wanted() -> None:
    code = "import torch as t\nx = t.zeros(3, dtype = t.float64)  # wide\n"
    assert_fixed(code, code.replace("float64", "float32"))
    assert_fixed(code, unsafe=False)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '"cuda" if torch.cuda.is_available() else "cpu"',
            '"cuda" if torch.cuda.is_available() else '
            '"mps" if torch.backends.mps.is_available() else "cpu"',
        ),
        (
            "torch.device('cuda:0') if torch.cuda.is_available() else torch.device('cpu')",
            "torch.device('cuda:0') if torch.cuda.is_available() else "
            "torch.device(\"mps\") if torch.backends.mps.is_available() else torch.device('cpu')",
        ),
    ],
)
def test_mps_comes_before_the_cpu(before: str, after: str) -> None:
    assert_fixed(f"import torch\nx = {before}  # best\n", f"import torch\nx = {after}  # best\n")


def test_an_option_against_cuda_may_be_one_against_every_gpu() -> None:
    test = "torch.cuda.is_available() and not args.no_cuda"
    assert_fixed(f"import torch\nx = 'cuda' if {test} else 'cpu'\n")


def test_variables_are_set_above_the_imports_with_what_they_use() -> None:
    assert_fixed(
        """
        # what it is
        import sys
        import torch
        import os  # for the environment

        x = 1
        os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"  # eigh
        os.environ.setdefault(
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO", "0.0"
        )
        """,
        """
        # what it is
        import sys
        import os  # for the environment
        os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"  # eigh
        os.environ.setdefault(
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO", "0.0"
        )
        import torch

        x = 1
        """,
        unsafe=False,
    )


@pytest.mark.parametrize(
    "code",
    [
        "import torch\nimport os; os.environ['PYTORCH_ENABLE_MPS_FALLBACK'] = '1'",
        "import torch\nimport os\nif x:\n    os.environ['PYTORCH_ENABLE_MPS_FALLBACK'] = '1'",
        "import torch\nimport os\nos.environ['PYTORCH_ENABLE_MPS_FALLBACK'] = choose()",
        "import torch\nimport os, sys\nos.environ['PYTORCH_ENABLE_MPS_FALLBACK'] = '1'",
        "x = 1; import torch\nimport os\nos.environ['PYTORCH_ENABLE_MPS_FALLBACK'] = '1'",
        "import torch\nimport os\nos.environ['PYTORCH_ENABLE_MPS_FALLBACK'] = '1'; x = 2",
    ],
)
def test_variables_that_cannot_be_moved_alone_are_left(code: str) -> None:
    assert_fixed(f"{code}\n", unsafe=False)
