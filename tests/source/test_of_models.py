"""Source rules beside captured models."""

from __future__ import annotations

from pathlib import Path

from scanner.locate.interface import Source
from scanner.records import Coverage, Location, ModelReport, OpReport, Target
from scanner.source.of_models import source_of_models

OLD = Target(framework="torch", version="2.5.1")


def model(*places: tuple[str, int]) -> ModelReport:
    """A model whose only op was captured at these places."""
    row = OpReport(
        op="aten::kthvalue.values",
        phase="forward",
        calls=1,
        config={},
        verdicts=(),
        locations=tuple(Location(file=file, line=line) for file, line in places),
    )
    return ModelReport(
        name="Net",
        source="train.py",
        entry="Net",
        mode="train",
        capture=None,
        ops=(row,),
        findings=(),
        coverage=Coverage(by_config={}, by_call={}),
    )


def test_files_and_local_imports_are_read_and_captured_calls_left_to_the_capture(
    tmp_path: Path,
) -> None:
    (tmp_path / "train.py").write_text("import torch, helper\ntorch.kthvalue(\n  x, 2)\nx.cuda()\n")
    (tmp_path / "helper.py").write_text("import torch\ntorch.kthvalue(x, 2)\n")
    located = [Source(argument="train.py", path=tmp_path / "train.py"), "not a source"]
    found = source_of_models(located, [model(("train.py", 3))], [OLD], tmp_path)
    assert found is not None
    assert [(each.rule, each.location and each.location.file) for each in found.findings] == [
        ("OPS601", "train.py"),
        ("OPS680", "helper.py"),
    ]
    assert (found.files, found.roots) == (2, ("train.py", "helper.py"))


def test_a_file_that_does_not_parse_is_left_to_the_capture(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nx.cuda(\n")
    located = [Source(argument="train.py", path=tmp_path / "train.py")]
    found = source_of_models(located, [], [OLD], tmp_path)
    assert found is not None
    assert found.findings == ()


def test_modules_by_name_have_no_file_to_read(tmp_path: Path) -> None:
    assert source_of_models([Source(argument="m", module="m")], [], [OLD], tmp_path) is None
