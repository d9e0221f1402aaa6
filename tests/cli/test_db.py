from __future__ import annotations

import json

import pytest

from opdb import query
from scanner.cli import quick
from tests.cli.conftest import Invoke


def test_op_in_one_release(invoke: Invoke) -> None:
    found = invoke("db", "op", "aten::kthvalue.values", "--torch", "2.5.1")
    assert found.code == 0
    assert found.out.startswith("aten::kthvalue.values  torch 2.5.1: unsupported\n")
    assert "fixed in torch 2.9.0" in found.out


def test_op_as_json(invoke: Invoke) -> None:
    found = json.loads(invoke("db", "op", "kthvalue.values", "--torch", "2.5.1", "-f", "json").out)
    contract = {
        "op": "aten::kthvalue.values",
        "framework": "torch",
        "version": "2.5.1",
        "status": "unsupported",
        "evidence": "database",
        "native_since": "2.9.0",
        "fallback_versions": [],
        "fixed_in": "2.9.0",
    }
    assert {key: found[key] for key in contract} == contract
    assert found["links"]
    assert list(found)[:5] == ["op", "framework", "version", "status", "evidence"]


def test_op_shows_what_a_composite_calls_that_the_release_lacks(invoke) -> None:
    op = "linalg_pinv.atol_rtol_tensor"
    old = invoke("db", "op", op, "--torch", "2.13.0").out
    chain = "aten::linalg_eigh -> aten::_linalg_eigh -> aten::_linalg_eigh.eigenvalues"
    assert f"  calls for some arguments {chain}: unsupported\n" in old
    assert "calls always" in invoke("db", "op", "linalg_eigh", "--torch", "2.13.0").out
    assert "arguments" not in invoke("db", "op", op, "--torch", "2.15.0").out


def test_op_in_several_releases(invoke: Invoke) -> None:
    asked = ("db", "op", "kthvalue.values", "--torch", "2.5.1", "--target", "torch==2.9,chip=M3")
    found = json.loads(invoke(*asked, "-f", "json").out)
    assert [(each["version"], each["status"]) for each in found] == [
        ("2.5.1", "unsupported"),
        ("2.9.1", "native"),
    ]
    assert invoke(*asked).out.count("aten::kthvalue.values  torch") == 2


def test_op_is_looked_up_in_the_newest_release_by_default(invoke: Invoke) -> None:
    assert f"torch {query.newest()}: native" in invoke("db", "op", "aten::mm").out


def test_an_op_of_another_release_is_unknown_but_no_mistake(invoke: Invoke) -> None:
    found = invoke("db", "op", "aten::_fused_rms_norm", "--torch", "1.12.1")
    assert found.code == 0
    assert "torch 1.12.1: unknown" in found.out


@pytest.mark.parametrize("command", [("db", "op"), ("explain",)])
def test_an_op_that_never_was_is_2_with_suggestions(
    invoke: Invoke, command: tuple[str, ...]
) -> None:
    found = invoke(*command, "aten::linalg_egih")
    assert (found.code, found.out) == (2, "")
    assert "aten::linalg_eigh" in found.err


@pytest.mark.parametrize("command", ["op", "list", "export"])
def test_an_unknown_release_is_2_with_what_is_near(invoke: Invoke, command: str) -> None:
    arguments = ("aten::mm",) if command == "op" else ()
    found = invoke("db", command, *arguments, "--torch", "2.99")
    assert (found.code, found.out) == (2, "")
    assert query.newest() in found.err


def test_list_by_part_of_the_name_and_status(invoke: Invoke) -> None:
    found = invoke("db", "list", "linalg_eigh", "--torch", "2.9.1", "--status", "unsupported")
    assert "unsupported  aten::_linalg_eigh" in found.out.splitlines()
    assert {line.split()[0] for line in found.out.splitlines()} == {"unsupported"}
    lines = invoke("db", "list", "linalg_eigh", "--torch", "2.9.1", "-f", "json").out.splitlines()
    assert {"native", "composite", "unsupported"} >= {json.loads(line)["status"] for line in lines}


def test_list_is_sorted_and_holds_every_op(invoke: Invoke) -> None:
    names = [line.split()[1] for line in invoke("db", "list", "--torch", "2.9.1").out.splitlines()]
    assert names == sorted(names)
    assert len(names) > 3000


def test_export_is_what_the_release_registers(invoke: Invoke) -> None:
    lines = invoke("db", "export", "--torch", "2.9.1").out.splitlines()
    assert len(lines) == 851
    assert lines == sorted(lines)
    assert "aten::linalg_svd" in lines


def test_check_passes_on_the_data_that_is_shipped(invoke: Invoke) -> None:
    found = invoke("db", "check")
    assert found.code == 0
    assert "mps.tsv" in found.out


def test_explain_op_shows_its_history(invoke: Invoke) -> None:
    found = invoke("explain", "aten::kthvalue.values")
    lines = [" ".join(line.split()) for line in found.out.splitlines()]
    assert "torch 1.12.1 to 2.8.0 unsupported" in lines
    assert f"torch 2.9.0 to {query.newest()} native" in lines


@pytest.mark.parametrize(
    "arguments",
    [
        ("aten::kthvalue.values",),
        ("aten::kthvalue.values", "--torch", "2.5.1"),
        ("--torch", "2.5", "kthvalue.values", "--torch", "2.9.1", "-f", "json"),
        ("aten::mm", "--format", "json"),
        ("aten::_fused_rms_norm", "--torch", "1.12.1"),
    ],
    ids=" ".join,
)
def test_the_quick_answer_is_the_full_answer(
    invoke: Invoke, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    full = invoke("db", "op", *arguments)
    assert quick.answer(arguments) == full.code == 0
    assert capsys.readouterr().out == full.out


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--help",),
        ("aten::mm", "aten::mul"),
        ("aten::mm", "--target", "torch==2.9.1"),
        ("aten::mm", "--torch=2.9.1"),
        ("aten::mm", "--torch"),
        ("aten::mm", "-f", "yaml"),
        ("aten::mm", "--torch", "2.99"),
        ("aten::no_such_op",),
    ],
    ids=" ".join,
)
def test_everything_else_is_left_to_the_full_command_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert quick.answer(arguments) is None
    assert capsys.readouterr() == ("", "")


def test_op_tells_what_execution_showed_by_dtype(invoke: Invoke) -> None:
    found = invoke("db", "op", "aten::gather", "--torch", "2.9.1").out
    assert "executed in the simulator, macOS 26.2, by dtype of the main operand:" in found
    assert "complex64: raises (RuntimeError: gather(): Yet not supported for complex)" in found
    listed = json.loads(invoke("db", "op", "gather", "--torch", "2.9.1", "-f", "json").out)
    outcomes = {each["dtype"]: each["outcome"] for each in listed["simulated"]}
    assert outcomes["complex64"] == "raises"
    assert outcomes["float32"].startswith("native-")


def test_op_of_a_release_that_was_not_executed_tells_nothing_of_it(invoke: Invoke) -> None:
    assert "executed" not in invoke("db", "op", "aten::gather", "--torch", "2.1.0").out
