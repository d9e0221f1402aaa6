"""Rewrites of calls: where they are offered, and that they compute the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scanner.fix.mend import Mender
from scanner.judge.rules.equivalents import EQUIVALENTS
from scanner.records import Target
from scanner.source.rules.rewrites import ON_CPU
from scanner.source.work import checker_for
from tests.fix.cases import nothing_accepted


def rewrite(line: str, release: str = "2.4.1") -> str:
    """One line as it is after `fix --unsafe` for a release."""
    targets = (Target(framework="torch", version=release),)
    mender = Mender(checker_for(targets), unsafe=True, accepts=nothing_accepted)
    head = "import torch\nimport torch.nn.functional as F\n"
    mended = mender.mend(f"{head}{line}\n")
    assert mender.mend(mended.text).text == mended.text
    assert mended.text.startswith(head)
    return mended.text.removeprefix(head).removesuffix("\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = torch.take(a + b, index=i)  # flat", "y = (a + b).reshape(-1)[i]  # flat"),
        ("y = torch.kthvalue(x, 3).values", "y = x.sort(-1).values.select(-1, 3 - 1)"),
        ("y = torch.kthvalue(x, k=3, dim=1).values", "y = x.sort(1).values.select(1, 3 - 1)"),
        ("y = -torch.rsub(x, 1)", "y = -(1 - x)"),
        ("m = torch.isposinf(f(x)).sum()", "m = (f(x) == torch.inf).sum()"),
        ("m = torch.isneginf(x)", "m = (x == -torch.inf)"),
        (
            "m = torch.heaviside(o.x, v)",
            "m = torch.where(o.x == 0, v, (o.x > 0).to(o.x.dtype))",
        ),
        ("z = F.hardshrink(x)", "z = x.masked_fill(x.abs() <= 0.5, 0)"),
        (
            "z = F.channel_shuffle(x, 3)",
            "z = x.unflatten(1, (3, -1)).transpose(1, 2).flatten(1, 2)",
        ),
        ("w = torch.vdot(a, b)", "w = (a.conj() * b).sum(dtype=a.dtype)"),
        (
            "w = torch.linalg.eigvalsh(a.b).mean()",
            "w = torch.linalg.eigvalsh(a.b.cpu()).to(a.b.device).mean()",
        ),
    ],
)
def test_calls_that_a_release_lacks_are_written_in_other_words(before: str, after: str) -> None:
    assert rewrite(before) == after


@pytest.mark.parametrize(
    "line",
    [
        "y = torch.kthvalue(x, 3)[0]",
        "v, i = torch.kthvalue(x, 3)",
        "y = torch.kthvalue(x, 3, keepdim=True).values",
        "y = torch.rsub(x, y, alpha=2)",
        "y = torch.take(*arguments)",
        "m = torch.heaviside(f(x), v)",
        "w = torch.linalg.eigvalsh(f(a))",
        "y = torch.take(\n    x,  # the tensor\n    i,\n)",
        "y = torch.take(x.cpu(), i)",
        "y = torch.isposinf(x, out=z)",
    ],
)
def test_calls_with_no_one_right_answer_are_left_alone(line: str) -> None:
    assert rewrite(line) == line


def test_calls_that_the_target_runs_are_left_alone() -> None:
    line = "y = torch.kthvalue(x, 3).values"
    assert rewrite(line, "2.9.1") == line


FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.uint8)
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@st.composite
def tensors(draw: st.DrawFn, kinds: tuple[torch.dtype, ...], shape: Any = SHAPES) -> torch.Tensor:
    """With zeros, infinities, NaN and equal values among the elements."""
    sizes = shape if isinstance(shape, list) else draw(shape)
    dtype = draw(st.sampled_from(kinds))
    count = torch.Size(sizes).numel()
    pool = [0.0, 1.0, 2.0, 0.5, 3.0, 7.0]
    pool += [-1.0, -0.5, -0.0, torch.inf, -torch.inf, torch.nan] if dtype in FLOATS else []
    values = draw(st.lists(st.sampled_from(pool), min_size=count, max_size=count))
    return torch.tensor(values).to(dtype).reshape(sizes)


@st.composite
def cases(draw: st.DrawFn, op: str) -> dict[str, Any]:
    """Arguments for the pattern of an op, by its parameters."""
    x = draw(tensors(FLOATS if op in ("aten::hardshrink",) else (*FLOATS, *INTEGERS)))
    match op:
        case "aten::hardshrink":
            return {"x": x, "lambd": draw(st.sampled_from([0.5, 1.0]))}
        case "aten::heaviside":
            return {"x": x, "values": draw(tensors((x.dtype,), list(x.shape)))}
        case "aten::kthvalue":
            dim = draw(st.integers(-x.dim(), x.dim() - 1))
            return {"x": x, "dim": dim, "k": draw(st.integers(1, x.size(dim)))}
        case "aten::take":
            places = st.integers(-x.numel(), x.numel() - 1)
            return {"x": x, "index": torch.tensor(draw(st.lists(places)), dtype=torch.int64)}
        case "aten::rsub":
            return {"x": x, "other": draw(tensors((*FLOATS, *INTEGERS), list(x.shape)))}
        case "aten::channel_shuffle":
            groups = draw(st.integers(1, 3))
            sizes = [draw(st.integers(0, 2)), groups * draw(st.integers(1, 3)), 2]
            return {"x": draw(tensors(FLOATS, sizes)), "groups": groups}
        case "aten::vdot":
            size = [draw(st.integers(1, 6))]
            kind = draw(st.sampled_from([torch.float32, torch.float64, *INTEGERS[:2]]))
            return {"x": draw(tensors((kind,), size)), "y": draw(tensors((kind,), size))}
    return {"x": x}


@pytest.mark.parametrize("op", sorted(EQUIVALENTS.keys() - {"aten::_cdist_backward"}))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_rewrites_compute_the_same_for_every_shape_and_dtype(op: str, data: st.DataObject) -> None:
    known = data.draw(cases(op))
    pattern = EQUIVALENTS[op]
    expected = eval(pattern.call, {"torch": torch}, known)
    found = eval(pattern.instead, {"torch": torch}, known)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, equal_nan=True)


@pytest.mark.parametrize("name", sorted(ON_CPU))
def test_calls_on_the_cpu_return_one_tensor_of_one(name: str) -> None:
    x = torch.eye(3) + 0.1
    code = f"{name}(x, 0)" if name == "torch.logcumsumexp" else f"{name}(x)"
    after = rewrite(f"y = {code}").removeprefix("y = ")
    assert after != code
    expected, found = (eval(each, {"torch": torch, "x": x}) for each in (code, after))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
