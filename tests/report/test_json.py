from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from scanner.errors import DataError
from scanner.records import Report
from scanner.report import FORMATS, Style, render
from scanner.report.json_ import parse
from scanner.report.schema import schema_text
from tests.report.sample_report import (
    BOTH,
    clean_report,
    report,
    timed_report,
    whole_report,
)

SCHEMA = Path(__file__).parents[2] / "docs" / "opscan.report-1.schema.json"
SAMPLES = pytest.mark.parametrize(
    "sample", [report(), report(*BOTH), clean_report(), timed_report(), whole_report()]
)


def encoded(sample: Report) -> bytes:
    return render(sample, "json", Style()).encode()


def test_golden(snapshot: SnapshotAssertion) -> None:
    assert render(report(), "json", Style()) == snapshot


def test_times_golden(snapshot: SnapshotAssertion) -> None:
    (model,) = json.loads(render(timed_report(), "json", Style()))["models"]
    shares = {
        row["op"]: row["measurement"]["detail"].get("share")
        for row in model["ops"]
        if row["measurement"] is not None
    }
    assert {
        "time": model["time"],
        "by_time": model["coverage"]["by_time"],
        "share": shares,
    } == snapshot


def test_golden_of_whole_steps(snapshot: SnapshotAssertion) -> None:
    assert render(whole_report(), "json", Style()) == snapshot


@SAMPLES
def test_what_is_written_is_what_is_read(sample: Report) -> None:
    assert parse(encoded(sample), "report.json") == sample


@SAMPLES
def test_reading_and_writing_again_changes_no_byte(sample: Report) -> None:
    assert encoded(parse(encoded(sample), "report.json")) == encoded(sample)


@SAMPLES
def test_every_format_is_the_same_from_a_saved_report(sample: Report) -> None:
    saved = parse(encoded(sample), "report.json")
    for name in FORMATS:
        style = Style(verbosity=1)
        assert render(saved, name, style) == render(sample, name, style), name


def test_order_of_attributes_does_not_matter() -> None:
    def with_attributes(attributes: dict[str, int]) -> bytes:
        found = clean_report()
        rows = tuple(
            msgspec.structs.replace(row, config=row.config | {"attributes": attributes})
            for row in found.models[0].ops
        )
        model = msgspec.structs.replace(found.models[0], ops=rows)
        return encoded(msgspec.structs.replace(found, models=(model,)))

    assert with_attributes({"a": 1, "b": 2}) == with_attributes({"b": 2, "a": 1})


@SAMPLES
def test_it_validates_against_the_schema_in_the_repository(sample: Report) -> None:
    jsonschema.validate(json.loads(encoded(sample)), json.loads(SCHEMA.read_text()))


def test_the_schema_rejects_what_is_no_report() -> None:
    document = json.loads(encoded(report()))
    schema = json.loads(SCHEMA.read_text())
    document["models"][0]["ops"][0]["verdicts"][0]["status"] = "fine"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)
    document = json.loads(encoded(report()))
    del document["models"][0]["ops"][0]["config"]["inputs"][0]["stride"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)


def test_the_schema_in_the_repository_is_current() -> None:
    assert SCHEMA.read_text() == schema_text()


def test_names_of_the_contract() -> None:
    document = json.loads(encoded(report()))
    assert {"schema", "tool", "environment", "targets", "models", "summary", "exit_code"} <= set(
        document
    )
    model = document["models"][0]
    assert {"name", "source", "entry", "mode", "capture", "ops", "findings", "coverage"} <= set(
        model
    )
    assert {"memory", "time"} <= set(model)
    assert {"method", "complete", "notes"} <= set(model["capture"])
    row = model["ops"][0]
    assert {"op", "phase", "calls", "config", "verdicts", "locations"} <= set(row)
    assert {"measurement", "estimate"} <= set(row)
    assert {"dtype", "shape", "stride", "offset"} <= set(row["config"]["inputs"][0])
    assert "attributes" in row["config"]
    verdict = row["verdicts"][0]
    assert {"target", "status", "evidence", "reason", "fixed_in", "links"} <= set(verdict)
    assert {"file", "line", "code", "module"} <= set(row["locations"][0])
    finding = model["findings"][0]
    contract = (
        "rule severity target op message remedy location fixed_in links fingerprint suppressed"
    )
    assert set(contract.split()) <= set(finding)
    assert {"by_config", "by_call", "by_time"} <= set(model["coverage"])
    assert {"errors", "warnings", "notes", "complete"} <= set(document["summary"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not an opscan report"),
        (b"{", "not an opscan report"),
        (b"[]", "not an opscan report"),
        (b"{}", "not an opscan report"),
        (b'"\xff"', "not an opscan report"),
        (b'{"schema": "opscan.report/2"}', "has the schema 'opscan.report/2'"),
        (b'{"schema": "opscan.report/1"}', "damaged report"),
        (b'{"schema": "opscan.baseline/1"}', "is a baseline, not a report"),
    ],
)
def test_bad_files_are_named_with_the_reason(text: bytes, message: str) -> None:
    with pytest.raises(DataError) as raised:
        parse(text, "some.json")
    assert raised.value.message.startswith("some.json ")
    assert message in raised.value.message
    assert raised.value.remedy


def edited(path: str, value: Any) -> bytes:
    """The sample with another value at a path like `models/0/ops`."""
    *parents, last = path.split("/")
    document = node = json.loads(encoded(report()))
    for name in parents:
        node = node[int(name) if isinstance(node, list) else name]
    node[last] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("targets", [], "`$.targets`"),
        ("environment/notes", 3, "`$.environment.notes`"),
        ("environment/notes", [None], "`$.environment.notes[0]`"),
        ("models/0/ops/0/verdicts", [], "`$.models[0].ops[0].verdicts`"),
        ("models/0/ops/0/config", {"inputs": [None]}, "`$.models[0].ops[0].config.inputs[0]`"),
        ("models/0/ops/0/config/attributes", 3, "`$.models[0].ops[0].config.attributes`"),
        ("models/0/order", [{"targets": [], "rows": [10**6]}], "`$.models[0].order[0]`"),
        ("models/0/time", {"device_s": 1}, "`$.models[0].time`"),
        (
            "models/0/ops/0/measurement",
            {"device": "cpu", "status": "native", "detail": {"share": 1}},
            "detail of cpu.share`",
        ),
    ],
)
def test_what_records_leave_open_is_checked_too(path: str, value: Any, place: str) -> None:
    with pytest.raises(DataError) as raised:
        parse(edited(path, value), "some.json")
    assert raised.value.message.startswith("some.json is a damaged report: ")
    assert raised.value.message.endswith(place)


def test_fields_of_a_newer_minor_version_are_ignored() -> None:
    document = json.loads(encoded(report()))
    document["models"][0]["sung"] = True
    assert parse(json.dumps(document).encode(), "report.json") == report()
