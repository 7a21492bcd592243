"""Catalogs' answers, and shared schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import ValidationError
from pyiceberg.catalog.rest import TableResponse
from pyiceberg.typedef import IcebergBaseModel

from catalog.iceberg.bloom_filters import filter_properties
from catalog.iceberg.load_answer import table_of
from tests.support.catalog.memory import MemoryCatalog


@pytest.fixture
def told(tmp_path: Path) -> dict[str, Any]:
    metadata = json.loads(MemoryCatalog(tmp_path).load().iceberg.metadata.model_dump_json())
    return {"metadata-location": "s3://lake/v1.metadata.json", "metadata": metadata, "config": {"a": "b"}}


def test_it_reads_as_pyiceberg_reads_it(told: dict[str, Any]) -> None:
    text = json.dumps(told)
    assert table_of(text) == table_of(text) == TableResponse.model_validate_json(text)


def test_tables_with_the_same_columns_share_them(told: dict[str, Any]) -> None:
    first = table_of(json.dumps(told)).metadata
    second = table_of(json.dumps({**told, "metadata": told["metadata"] | {"table-uuid": str(uuid4())}})).metadata
    assert second.table_uuid != first.table_uuid
    assert second.schema() is first.schema()


def test_nothing_is_added_to_shared_columns_by_using_them(told: dict[str, Any]) -> None:
    """Threads share them. Python can't copy an object while another thread adds to it."""
    told["metadata"]["schemas"][0]["fields"] += [
        {"id": number, "name": uuid4().hex, "required": False, "type": kind}
        for number, kind in (
            (900, {"type": "list", "element-id": 901, "element": "string", "element-required": False}),
            (
                902,
                {"type": "map", "key-id": 903, "key": "int", "value-id": 904, "value": "date", "value-required": True},
            ),
        )
    ]
    metadata = table_of(json.dumps(told)).metadata
    schema = metadata.schema()
    before = _members(schema)
    assert {"ListType", "MapType"} <= {kind for kind, _ in before}
    schema.find_field("KAFKA", case_sensitive=False)
    schema.find_column_name(schema.highest_field_id)
    schema.as_arrow()
    metadata.spec().partition_type(schema)
    for field_id in schema.field_ids:
        schema.find_type(field_id)
    schema.accessor_for_field(schema.fields[0].field_id)
    schema.check_format_version_compatibility(2)
    assert schema.model_copy(deep=True) == schema
    assert schema.model_dump_json()
    assert filter_properties(schema, {schema.highest_field_id: 0.01}) is not None
    assert _members(schema) == before


def _members(part: object) -> set[tuple[str, tuple[str, ...]]]:
    members = {(type(part).__name__, tuple(sorted(vars(part))))}
    for member in vars(part).values():
        for below in member if isinstance(member, tuple) else (member,):
            if isinstance(below, IcebergBaseModel):
                members |= _members(below)
    return members


@pytest.mark.parametrize("change", [{"name": "other"}, {"id": 4_000}, {"doc": "other"}, {"required": True}])
def test_other_columns_are_others(told: dict[str, Any], change: dict[str, Any]) -> None:
    first = table_of(json.dumps(told)).metadata
    told["metadata"]["schemas"][0]["fields"][-1] |= change
    text = json.dumps(told)
    second = table_of(text).metadata
    assert second == TableResponse.model_validate_json(text).metadata
    assert second.schema() != first.schema()


@pytest.mark.parametrize(
    "change",
    [
        {"schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "type": "nonsense"}]}]},
        {"schemas": [1]},
        {"schemas": {}},
        {"schemas": None},
    ],
)
def test_an_answer_that_cannot_be_read_is_told_as_by_pyiceberg(told: dict[str, Any], change: dict[str, Any]) -> None:
    text = json.dumps({**told, "metadata": told["metadata"] | change})
    errors = []
    for read in (table_of, TableResponse.model_validate_json):
        with pytest.raises(ValidationError) as caught:
            read(text)
        errors.append(caught.value.errors(include_url=False, include_context=False))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("text", ["", "hello", "[]", "{}", '{"metadata": 1, "metadata-location": "x"}'])
def test_what_is_no_answer_is_none(text: str) -> None:
    with pytest.raises(ValidationError):
        table_of(text)
