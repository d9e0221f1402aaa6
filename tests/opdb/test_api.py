"""Calls of the public API, judged by name."""

from __future__ import annotations

import pytest

from opdb import api, intervals, query, store, tables

ROWS = [fields for _, fields in tables.lines(store.default.folder / tables.API.file, tables.API)]


@pytest.mark.parametrize(
    ("name", "release", "lack"),
    [
        # aten::kthvalue.values: no MPS kernel before 2.9.0, see `opscan db op`.
        ("torch.kthvalue", "2.5.1", "unsupported"),
        ("torch.kthvalue", "2.9.1", None),
        ("torch.Tensor.kthvalue", "2.5.1", "unsupported"),
        # aten::_linalg_eigh.eigenvalues: since 2.10.
        ("torch.linalg.eigh", "2.9.1", "unsupported"),
        ("torch.linalg.eigh", "2.15.0", None),
        # aten::linalg_svd is registered as a CPU fallback in 2.9.1.
        ("torch.linalg.svd", "2.9.1", "fallback"),
        # aten::_ctc_loss: since 2.14.0; module and function are judged alike.
        ("torch.nn.functional.ctc_loss", "2.13.0", "unsupported"),
        ("torch.nn.CTCLoss", "2.13.0", "unsupported"),
        ("torch.nn.CTCLoss", "2.14.0", None),
        ("torch.mm", "2.0.0", None),
        # A pool to one element is a mean, which every release has: not every call is the same.
        ("torch.nn.AdaptiveAvgPool3d", "2.15.0", None),
        # What makes tensors does so on the CPU, unless it is told otherwise.
        ("torch.tril_indices", "2.5.1", None),
        # Of sparse tensors; and dictionaries have one too.
        ("torch.Tensor.values", "2.5.1", None),
    ],
)
def test_what_a_release_lacks(name: str, release: str, lack: str | None) -> None:
    assert api.missing(release).get(name) == lack


def test_the_overload_that_decides_is_named() -> None:
    judged = api.judged("torch.kthvalue", "2.5.1")
    assert judged.fact is not None
    assert judged.fact.fixed_in == "2.9.0"
    assert api.variable_serves(judged)
    assert not api.variable_serves(api.judged("torch.kthvalue", "2.9.1"))


def test_a_name_that_nobody_knows_runs_for_all_that_is_known() -> None:
    assert api.judged("torch.nonsense", "2.9.1") == api.Judged("runs")
    assert api.missing("99.0") == {}


@pytest.mark.parametrize("release", [query.releases()[0], "2.9.1", query.newest()])
def test_what_is_written_follows_from_the_other_tables(release: str) -> None:
    where = store.default.places
    for name, always, one_of, _, *written, releases in ROWS:
        if not intervals.contains(releases, where[release], where):
            continue
        ops = [() if text == "-" else text.split(",") for text in (always, one_of)]
        says = [text != "-" and intervals.contains(text, where[release], where) for text in written]
        status = api.judge(ops[0], ops[1], release).status
        assert says == [status == "unsupported", status == "fallback"], name


def test_one_of_several_overloads_must_lack_for_all() -> None:
    lacks, runs = "kthvalue.values", "mm"
    assert api.judge([], [lacks, runs], "2.5.1").status == "runs"
    assert api.judge([], [lacks], "2.5.1").status == "unsupported"
    assert api.judge([lacks, runs], [], "2.5.1").status == "unsupported"
    assert api.judge([], ["no_such_op"], "2.5.1").status == "runs"


def test_names_are_public_and_reached_by_something() -> None:
    for name, always, one_of, source, *_ in ROWS:
        assert name.startswith("torch.")
        assert "._" not in name
        assert not name.startswith("torch.torch")
        assert (always == "-") == (source == "schema") != (one_of == "-")
