"""User errors as one message with a place in the user's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from scanner.errors import LocateError, UsageError
from scanner.locate.blame import blamed, describe, is_user_file, needs_values
from scanner.locate.interface import NeedsValues


def caught(action: str) -> BaseException:
    with torch.device("meta"), pytest.raises(Exception) as info:  # noqa: PT011
        exec(action, {"torch": torch, "t": torch.ones(2, 2)})
    return info.value


@pytest.mark.parametrize(
    "action",
    [
        "t.sum().item()",
        "bool(t.sum() > 0)",
        "float(t[0, 0])",
        "t.tolist()",
        "t.numpy()",
        "t.nonzero()",
        "t[t > 0]",
        "t.to('cpu')",
        "torch.unique(t)",
        "t.masked_select(t > 0)",
        "torch.equal(t, t)",
        "range(t.sum())",
        "f'{t.sum():.3f}'",
        "torch.repeat_interleave(t, torch.ones(2, dtype=torch.int64), dim=0)",
        "torch.nn.functional.one_hot(torch.ones(2, dtype=torch.int64))",
        "torch.nn.utils.rnn.pack_padded_sequence("
        "torch.ones(2, 3, 4), torch.ones(2, dtype=torch.int64), batch_first=True)",
    ],
)
def test_operations_that_need_values(action: str) -> None:
    assert needs_values(caught(action))


@pytest.mark.parametrize(
    "action",
    [
        "t @ torch.ones(3, 3)",
        "t.view(5)",
        "torch.nn.functional.cross_entropy(t, torch.ones(3, dtype=torch.int64))",
        "undefined",
        "raise ValueError('meta')",
        "1 / 0",
    ],
)
def test_plain_errors(action: str) -> None:
    assert not needs_values(caught(action))


def test_fake_tensors_need_values_too() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode, pytest.raises(Exception) as info:  # noqa: PT011
        mode.from_tensor(torch.ones(2)).sum().item()
    assert needs_values(info.value)


def test_a_cause_counts() -> None:
    error = ValueError("could not build")
    error.__cause__ = caught("t.sum().item()")
    assert needs_values(error)


def test_user_files(tmp_path: Path) -> None:
    assert is_user_file(str(tmp_path / "model.py"))
    assert not is_user_file(json.__file__)
    assert not is_user_file(torch.__file__)
    assert not is_user_file("<string>")
    assert not is_user_file(str(Path(__file__).parents[2] / "scanner" / "errors.py"))


def test_description(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("import json\njson.loads('[')\n")
    with pytest.raises(ValueError, match="Expecting") as info:
        exec(compile(file.read_text(), str(file), "exec"), {})
    assert describe(info.value, tmp_path) == (
        "model.py:2: JSONDecodeError: Expecting value: line 1 column 2 (char 1)\n"
        "    json.loads('[')"
    )
    assert describe(KeyError(), tmp_path) == "KeyError"


def test_blame(tmp_path: Path) -> None:
    with (
        pytest.raises(LocateError, match=r"doing this: .*: ValueError: x") as info,
        blamed("doing this", remedy="mend it", cwd=tmp_path),
    ):
        raise ValueError("x")
    assert info.value.remedy == "mend it"
    assert isinstance(info.value.__cause__, ValueError)


def test_blame_tells_missing_values_apart(tmp_path: Path) -> None:
    with pytest.raises(NeedsValues), blamed("x", remedy="", cwd=tmp_path), torch.device("meta"):
        torch.ones(1).item()


@pytest.mark.parametrize("error", [UsageError("x"), KeyboardInterrupt()])
def test_blame_lets_pass(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)) as info, blamed("x", remedy="", cwd=tmp_path):
        raise error
    assert info.value is error
