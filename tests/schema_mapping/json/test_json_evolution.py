"""Changed JSON Schemas."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from schema_mapping import LedgerState, assign
from schema_mapping.field_ids import Assignment
from schema_mapping.json.mapping import JsonMapping
from schema_mapping.json.schema import JsonSchema
from schema_mapping.row import row_mapping_from_json

VALUES = [b'{"n": {"y": 1, "x": "a"}, "a": 1}', b'{"a":2,"z":[1]}', b"{", b'{"a":null}', b'{"a":1.0}']


def schema(**members: Any) -> JsonSchema:
    return JsonSchema.of(json.dumps({"title": "T", "type": "object", "properties": members}))


def fields(kind: pa.DataType) -> dict[str, Any]:
    return {field.name: field.type for field in kind if not field.name.startswith("__")}


def ids_of(assigned: Assignment) -> dict[str, int]:
    mapping = assigned.row.value
    assert isinstance(mapping, JsonMapping)
    return {"/".join(map(str, column.path)): column.field_id for column in mapping.ids.columns}


INTEGER, TEXT, NUMBER = {"type": "integer"}, {"type": "string"}, {"type": "number"}
INNER = {"type": "object", "properties": {"x": TEXT, "y": INTEGER}}
OLD = schema(a=INTEGER, n=INNER)


@pytest.mark.parametrize(
    ("newer", "columns"),
    [
        (schema(n=INNER, a=INTEGER), {"a", "n"}),
        (schema(a=INTEGER, n=INNER, b=TEXT), {"a", "n", "b"}),
        (schema(a=INTEGER), {"a"}),
        (schema(a={"type": ["integer", "null"], "minimum": 3, "description": "d"}, n=INNER), {"a", "n"}),
        (schema(a=TEXT, n=INNER), {"a", "n"}),
        (schema(a=NUMBER, n={"type": "array", "items": INNER}), {"a", "n"}),
        (schema(a={}, n=TEXT), {"a", "n"}),
    ],
    ids=["order", "added", "removed", "nullable", "string", "array", "open"],
)
def test_older_rows_keep_their_bytes(newer: JsonSchema, columns: set[str]) -> None:
    first = assign(LedgerState(), value=OLD)
    rows = first.row.value.decode(pa.array(VALUES))
    second = assign(first.state, value=newer)
    assert {name for name in fields(second.row.value.arrow_type) if "deleted" not in name} == columns
    kept = row_mapping_from_json(json.loads(json.dumps(first.row.to_json())))
    assert kept == first.row
    assert kept.value.encode(rows).to_pylist() == VALUES
    newest = second.row.value
    assert newest.encode(newest.decode(pa.array(VALUES))).to_pylist() == VALUES
    assert pickle.loads(pickle.dumps(newest)) == newest


def test_columns_of_the_same_name_and_type_keep_their_ids() -> None:
    first = assign(LedgerState(), value=OLD)
    second = assign(first.state, value=schema(b=TEXT, n=INNER, a=INTEGER))
    before, after = (ids_of(assigned) for assigned in (first, second))
    assert before.items() <= after.items()
    third = assign(second.state, value=schema(a=TEXT))
    assert ids_of(third)["a"] not in after.values()


def test_integer_of_32_bits_is_widened_in_place() -> None:
    first = assign(LedgerState(), value=schema(a={"type": "integer", "connect.type": "int32"}))
    second = assign(first.state, value=schema(a=INTEGER))
    types = [fields(state.row.value.arrow_type)["a"] for state in (first, second)]
    assert types == [pa.int32(), pa.int64()]
    assert ids_of(first)["a"] == ids_of(second)["a"]


def test_description_changes_no_fingerprint() -> None:
    described = schema(a={**INTEGER, "description": "the number"}, n=INNER)
    first = assign(LedgerState(), value=OLD)
    assert assign(first.state, value=described).row.value.fingerprint == first.row.value.fingerprint
