"""Every collected report about torch: tested in one of the tables, or an exception with a reason.

`report_rows.tsv` lists the reports (`bench/report_rows.py` makes it). Those whose range is stated
or inferred are in `test_reports.py`, ops and dtypes that a release lacks in `test_reports_b.py`;
here are those whose range nobody knows exactly, as the entries have it. The exceptions are the
tables at the end of docs/known-issues.md.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from opdb.issues.book import default
from tests.opdb.issues import test_reports, test_reports_b
from tests.opdb.issues.test_reports import Report, configurations, flagged

ROWS = Path(__file__).with_name("report_rows.tsv")
PAGE = Path(__file__).parents[3] / "docs" / "known-issues.md"
EXCEPTION = re.compile(r"^\|(?P<reports>[^|]*)\|(?P<reason>[^|]+)\|$", re.MULTILINE)

REPORTS = (
    Report("adaptive-80732", "1.12.1", "1.13.0"),
    Report("argmax-92311", "1.13.1", "2.1.0", "13.0", "13.7"),
    Report("bernoulli-85611", "1.12.1", "1.13.0", "13", "12.6"),
    Report("bilstm-94754", "1.13.1", "2.0.0"),
    Report("bmm-111634", "2.1.0", "2.3.0"),
    Report("bmm-2e32-133430", "2.4.0", "2.5.0"),
    Report("bmm-2e32-noncontig", "2.13.0", "2.15.0"),
    Report("bmm-largeK-195163", "2.13.0", "2.15.0"),
    Report("bn2d-diff", "1.12.1", "1.13.0"),
    Report("conv-bwd-crash-113398", "2.1.0", "2.1.2"),
    Report("copy-2e32-182052", "2.11.0", "2.12.0"),
    Report("copy-83015", "1.12.1", "1.13.0"),
    Report("gathernd-94765", "2.0.0", "2.5.0", "13", "15.5"),
    Report("gptsovits-342", "2.1.0", "2.2.0"),
    Report("gumbel-159103", "2.7.0", "2.9.0"),
    Report("inplace-views-96153", "2.0.0", "2.4.0"),
    Report("interp-linear-ac-144245", "2.5.1", "2.6.0"),
    Report("interp-nearest-exact-134430", "2.5.0", "2.6.0"),
    Report("linear-20736", "1.13.0", "2.0.0", "13.2", "13.7"),
    Report("linear-bias-batch-2e16", "2.12.0", "2.14.0"),
    Report("linear-bias-k-small-m1", "2.13.0", "2.14.0", "26", "15.5"),
    Report("linear-k1-large", "2.2.0", "2.6.0"),
    Report("llama-fast-123151", "2.2.0", "2.3.0", "14.4", "14.0"),
    Report("lmhead-109457", "2.0.0", "2.6.0"),
    Report("lstm-bf-crash-87579", "1.13.1", "2.0.0"),
    Report("lstm-transposed-80306", "1.12.1", "1.13.0"),
    Report("matmul-116769", "2.1.0", "2.3.0"),
    Report("max-int64-90273", "1.13.0", "2.0.0"),
    Report("mps-132332", "2.5.0", "2.6.0"),
    Report("multinomial-intmin", "1.13.0", "2.1.0", "13.2", "14.4"),
    Report("multinomial-out-of-domain", "2.4.0", "2.6.0"),
    Report("multinomial-segv", "2.10.0", "2.12.0"),
    Report("nanogpt-458", "2.2.0", "2.3.0", "14.4", "14.0"),
    Report("ndarray-146769", "2.6.0", "2.9.0"),
    Report("ndarray-84039", "1.13.0", "2.0.0", "12", "13.0"),
    Report("ndarray-invoke-2639", "1.13.0", "2.5.0", "13.0", "15.0"),
    Report("nonblocking-139550", "2.5.1", "2.14.0"),
    Report("nonblocking-189690", "2.13.0", "2.14.0"),
    Report("nonzero-140570", "2.4.0", "2.4.1", "15.1", "14.7"),
    Report("pad-circular-conv", "1.12.1", "1.13.0"),
    Report("pad-constant-2d", "1.12.1", "1.13.0"),
    Report("pad-replicate-5d-mps", "2.0.1", "2.1.0"),
    Report("reflectpad1d-bwd-65536", "2.13.0", "2.15.0"),
    Report("replpad-hang", "2.5.0", "2.6.0"),
    Report("scatter-large-195595", "2.13.0", "2.14.0"),
    Report("sdpa-2e32-179352", "2.11.0", "2.12.0"),
    Report("sdpa-f32-leak", "2.7.0", "2.8.0"),
    Report("sdpa-gqa-149132", "2.6.0", "2.7.0"),
    Report("slice-large-153560", "2.7.0", "2.8.0"),
    Report("softmax-large-96602b", "2.1.0", "2.2.0"),
    Report("sort-int64-154", "2.7.0", "2.12.0", "15.4", "15.1"),
    Report("sovits-337", "2.0.0", "2.2.0"),
    Report("st-3197", "2.8.0", "2.9.0"),
    Report("svd-out-complex", "2.13.0", "2.14.0"),
    Report("tabpfn-888", "2.10.0", "2.12.0"),
    Report("topk-correct-inconsistent", "1.13.0", "2.0.0"),
    Report("where-broadcast", "1.12.1", "1.13.0"),
    Report("wlm-training-bad", "1.13.0", "2.0.0"),
    Report("yue-176", "2.10.0", "2.11.0"),
)
"""A release that was reported, or the nearest that the database has; one behind the range."""

each = pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)


class Row(NamedTuple):
    """A collected report, as far as these tests use it."""

    name: str
    kind: str
    version: str


@cache
def rows() -> tuple[Row, ...]:
    lines = (line for line in ROWS.read_text().splitlines() if not line.startswith("#"))
    read = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return tuple(Row(row["id"], row["class"], row["version"]) for row in read)


@cache
def exceptions() -> dict[str, str]:
    """Report → why no entry stands for it."""
    found = {}
    for match in EXCEPTION.finditer(PAGE.read_text()):
        for name in re.findall(r"`([^`]+)`", match["reports"]):
            found[name] = match["reason"].strip()
    return {name: found[name] for name in found if name in {row.name for row in rows()}}


def in_tables() -> set[str]:
    tables = (test_reports.REPORTS, test_reports_b.OPS, test_reports_b.DTYPES, REPORTS)
    return {report.name for table in tables for report in table}


@each
def test_it_is_flagged_where_it_was_seen_and_not_behind_the_range(report: Report) -> None:
    calls = configurations(report)
    assert any(flagged(report, call, report.inside) for call in calls)
    assert not any(flagged(report, call, report.outside) for call in calls)


@pytest.mark.parametrize(
    "report", [report for report in REPORTS if report.spared], ids=lambda report: report.name
)
def test_it_is_silent_on_systems_that_are_spared(report: Report) -> None:
    other = report._replace(macos=report.spared)
    assert not any(flagged(other, call, report.inside) for call in configurations(report))


def test_every_report_is_tested_or_an_exception_and_none_is_both() -> None:
    names = Counter(row.name for row in rows())
    assert len(names) == sum(names.values()) > 200
    assert in_tables() | exceptions().keys() == names.keys()
    assert not in_tables() & exceptions().keys()
    assert all(len(reason) > 10 for reason in exceptions().values())


def test_every_missing_op_and_dtype_with_a_version_is_held_against_the_database() -> None:
    database = {report.name for report in (*test_reports_b.OPS, *test_reports_b.DTYPES)}
    for row in rows():
        if row.kind in {"unsupported", "dtype", "silent-fallback"} and row.version:
            assert row.name in database | exceptions().keys(), row


def test_entries_stand_for_reports_that_exist() -> None:
    names = {row.name for row in rows()}
    for entry in default.entries:
        assert set(entry.issue.reports) <= names, entry.issue.id
