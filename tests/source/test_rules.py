"""The three rules that show how others are written."""

from __future__ import annotations

import pytest

from tests.source.cases import assert_hits, hits_of


def test_cuda_is_found_however_it_is_spelled() -> None:
    assert_hits(
        "OPS601",
        """
        import torch as t
        from torch import device as place
        NAME = "cuda:1"
        model = Net().cuda()  # hit
        model.to("cuda")  # hit
        t.device("cuda")  # hit
        place(NAME)  # hit
        model.to(NAME)  # hit
        self.x[0].cuda(non_blocking=True)  # hit
        """,
    )


def test_cuda_after_a_test_for_it_is_fine() -> None:
    assert_hits(
        "OPS601",
        """
        import torch
        use_cuda = torch.cuda.is_available()
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if torch.cuda.is_available() and big:
            model.cuda()
        if use_cuda:
            model.cuda()
        else:
            model.cuda()  # hit
        x = x.cuda() if args.cuda else x
        def move(x):
            if not torch.cuda.is_available():
                return x
            return x.cuda()
        model.to("cpu"), model.to(device), torch.cuda.synchronize()
        chart.cuda(1, 2, 3)
        """,
    )


def test_float64_is_found_where_it_makes_something() -> None:
    found = assert_hits(
        "OPS620",
        """
        import torch
        x = torch.zeros(3, dtype=torch.float64)  # hit
        y = x.to(torch.double)  # hit
        if x.dtype == torch.float64: pass
        z = np.float64(1)
        """,
    )
    assert [each.hit.correction.edits[0].text for each in found if each.hit.correction] == [
        "torch.float32",
        "torch.float32",
    ]


@pytest.mark.parametrize("line", ["import torch.cuda.amp", "from torch.cuda.amp import autocast"])
def test_cuda_amp_is_found_where_it_is_imported(line: str) -> None:
    assert_hits("OPS640", f"{line}  # hit\nwith autocast(): pass\n")


def test_cuda_amp_is_found_where_it_is_used() -> None:
    _, found = hits_of("OPS640", "import torch\ns = torch.cuda.amp.GradScaler()\n")
    assert [each.hit.message.split()[0] for each in found] == ["torch.cuda.amp.GradScaler"]
