"""The JSON Schema of `opscan.report/1`, derived from the records."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from scanner.records import Report, TensorSpec
from scanner.report.json_ import SCHEMA

__all__ = ["schema_text"]


def schema_text() -> str:
    """The schema as a file: draft 2020-12, sorted, ending in a newline."""
    return json.dumps(_schema(), indent=2, sort_keys=True) + "\n"


def _schema() -> dict[str, Any]:
    (root, _), definitions = msgspec.json.schema_components(
        [Report, TensorSpec], ref_template="#/$defs/{name}"
    )
    for definition in definitions.values():
        # Every field is always written; only fields of later minor versions may come on top.
        definition["required"] = sorted(definition["properties"])
        for field in definition["properties"].values():
            field.pop("default", None)
    definitions["Report"]["properties"]["schema"] = {"const": SCHEMA}
    definitions["OpReport"]["properties"]["config"] = _config()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **root,
        "$defs": definitions,
    }


def _config() -> dict[str, Any]:
    tensors = {"type": "array", "items": {"$ref": "#/$defs/TensorSpec"}}
    values = {"type": "array", "items": {"type": "integer"}}
    names = {"type": "array", "items": {"type": "string"}}
    return {
        "type": "object",
        "required": ["attributes", "inputs", "outputs"],
        "properties": {
            "inputs": tensors,
            "outputs": tensors,
            "attributes": {"type": "object"},
            # Only where the step had values, of small integer and bool arguments.
            "values": {"type": "object", "additionalProperties": values},
            # Only of composite ops for which it matters what they call.
            "inner": {"type": "object", "additionalProperties": names},
        },
    }
