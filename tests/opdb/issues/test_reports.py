"""Collected bug reports whose range is stated or inferred: flagged inside it, silent outside."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from opdb.issues.book import Entry, default
from opdb.issues.calls import read_call
from opdb.issues.match import find
from scanner.records import OpCall, Target


class Report(NamedTuple):
    """An affected release, one that is not; where it matters, a system that is, one that is not."""

    name: str
    inside: str
    outside: str
    macos: str | None = None
    spared: str | None = None


REPORTS = (
    Report("addcdiv-noncontig", "2.3.1", "2.4.0"),
    Report("argmax-2.13-cherry", "2.12.1", "2.13.0", "27.0", "26.2"),
    Report("bn-bwd-channelslast-175189", "2.13.0", "2.14.0", "14.7", "15.5"),
    Report("categorical-141457", "2.5.1", "2.6.0", "14.7", "15.5"),
    Report("conv-cl-94384", "1.13.1", "2.6.0"),
    Report("conv1d-outch-2e16", "2.3.1", "2.4.0"),
    Report("conv2d-noncontig-weight", "2.13.0", "2.14.0"),
    Report("copy-index-108978", "2.1.0", "2.1.1"),
    Report("cpu0dim-offset-187117", "2.13.0", "2.14.0"),
    Report("cumsum-bool", "2.3.1", "2.4.0"),
    Report("groundingdino-349", "2.4.1", "2.5.0"),
    Report("hf-44591", "2.10.0", "2.12.0"),
    Report("index_add-transposed-macos14", "2.10.0", "2.12.0", "14.7", "15.5"),
    Report("layernorm-mixed-dtype", "2.13.0", "2.14.0"),
    Report("layernorm-smallvar", "2.13.0", "2.14.0"),
    Report("lm-eval-mps", "2.2.2", "2.3.0", "14.4", "14.3"),
    Report("logsoftmax-94043", "1.13.1", "2.0.0"),
    Report("lstm-bwd-95137", "1.13.1", "2.0.0"),
    Report("lstm-collapse-173640", "2.11.0", "2.14.0"),
    Report("lstm-dropout-mask-185351", "2.12.1", "2.13.0"),
    Report("lstm-eval-batch-180744", "2.11.0", "2.13.0"),
    Report("lu_factor-singular", "2.9.1", "2.10.0"),
    Report("masked_fill-noncontig", "2.4.1", "2.5.0"),
    Report("nll-nan-mean", "2.4.1", "2.6.0"),
    Report("nonzero-2e24-122916", "2.3.1", "2.4.1"),
    Report("pad-5d-65536", "2.13.0", "2.15.0"),
    Report("replicationpad1d-bwd", "2.7.1", "2.8.0"),
    Report("sdpa-nan-not-propagated", "2.13.0", "2.14.0"),
    Report("sdpa-permute-181133", "2.11.0", "2.12.0"),
    Report("sdpa-vdim-176767", "2.11.0", "2.12.0"),
    Report("sdpa-vector-partialblock", "2.9.1", "2.10.0"),
    Report("sdxl-macos27", "2.12.1", "2.13.0", "27.0", "26.2"),
    Report("sort-digamma-stride-175187", "2.11.0", "2.13.0"),
    Report("sort-pad-184620", "2.12.0", "2.13.0"),
    Report("st-3507", "2.8.0", "2.9.0"),
    Report("stack-offset-87856", "1.13.1", "2.0.0"),
    Report("transformerlens-1178", "2.8.0", "2.9.0", "15.5", "14.7"),
    Report("where-noncontig-cond", "2.7.1", "2.8.0", "13.7", "15.5"),
    Report("zero-slice-114692", "2.1.1", "2.1.2"),
    Report("conj-einsum-177474", "2.10.0", "2.11.0"),
    Report("conj-imag-184379", "2.12.1", "2.13.0"),
    Report("copy-gappy-189961", "2.13.0", "2.14.0"),
    Report("fmax-mixed", "2.7.1", "2.8.0"),
    Report("hardswish-cl-107214", "2.4.1", "2.15.0"),
    Report("maximum-nan-143976", "2.6.0", "2.7.0"),
    Report("randperm-104170", "2.0.1", "2.1.0"),
    Report("relu-nan-183571", "2.12.1", "2.13.0"),
    Report("scatter-permuted", "2.4.1", "2.13.0"),
    Report("sort-strided-101878", "2.12.1", "2.13.0", "14.7", "15.5"),
    Report("sum-saturate", "2.12.1", "2.13.0"),
    Report("unique-104879", "2.0.1", "2.1.0"),
)
"""As the reports and the fixes that they name say, in releases that the database has; the entries
say where executing a release showed otherwise."""


def entries(report: Report) -> list[Entry]:
    return [entry for entry in default.entries if report.name in entry.issue.reports]


def configurations(report: Report) -> list[OpCall]:
    return [read_call(text) for entry in entries(report) for text in entry.issue.hits]


def flagged(report: Report, call: OpCall, version: str) -> bool:
    """Whether an entry of the report applies to a configuration."""
    target = Target(framework="torch", version=version, macos=report.macos)
    return any(report.name in match.issue.reports for match in find(default, call, target))


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_a_report_is_flagged_in_its_range_and_not_outside(report: Report) -> None:
    calls = configurations(report)
    assert any(flagged(report, call, report.inside) for call in calls)
    assert not any(flagged(report, call, report.outside) for call in calls)


@pytest.mark.parametrize(
    "report", [report for report in REPORTS if report.spared], ids=lambda report: report.name
)
def test_a_report_about_some_systems_is_silent_on_others(report: Report) -> None:
    other = report._replace(macos=report.spared)
    assert not any(flagged(other, call, report.inside) for call in configurations(report))


def test_every_entry_with_a_known_range_that_stands_for_reports_is_in_the_table() -> None:
    known = {report.name for report in REPORTS}
    silent = {"wrong-values", "wrong-gradients", "nan"}
    for entry in default.entries:
        issue = entry.issue
        if issue.effect in silent and issue.reports and issue.confidence != "unverified":
            assert known & set(issue.reports), issue.id
