"""Columns of files, fixed ids, and stored mappings."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf.message_factory import GetMessageClass

from schema_mapping import LedgerState, RawMapping, RowMapping, assign
from schema_mapping.columns.fixed import FIXED_LEAVES
from schema_mapping.errors import DescriptorError
from schema_mapping.protobuf.descriptors import find_descriptor
from schema_mapping.row import row_mapping_from_json, row_mapping_from_text
from tests.support.schemas.proto_text import fields

FIXED = {
    "key": 1,
    "val": 2,
    "headers": 3,
    "kafka": 4,
    "headers.element": 5,
    "headers.element.key": 6,
    "headers.element.value": 7,
    "headers.element.__raw_key__": 8,
    "kafka.partition": 10,
    "kafka.offset": 11,
    "kafka.event_timestamp": 12,
    "kafka.ingest_timestamp": 13,
    "kafka.batch_start": 14,
    "kafka.batch_end": 15,
    "kafka.timestamp_type": 16,
    "kafka.append_timestamp": 17,
    "kafka.raw_timestamp": 18,
    "kafka.leader_epoch": 19,
    "kafka.producer_id": 20,
    "kafka.producer_epoch": 21,
    "kafka.base_sequence": 22,
    "kafka.attributes": 23,
    "kafka.schema_version": 24,
    "ingest_timestamp": 30,
}


def test_fixed_ids() -> None:
    assigned = assign(LedgerState(), partition_source="flat")
    result = {assigned.iceberg_schema.find_column_name(field_id): field_id for field_id in range(1, 100)}
    result.pop(None)
    assert result == FIXED
    assert assigned.iceberg_schema.highest_field_id == 101
    assert len(FIXED) - len(("key", "val", "headers", "headers.element", "kafka")) == FIXED_LEAVES


def test_nested_partition_source_has_no_flat_column() -> None:
    row = assign(LedgerState()).row
    assert row.arrow_schema.names == ["key", "val", "headers", "kafka"]
    assert row.partition_source == "nested"


def test_only_header_keys_and_elements_are_required() -> None:
    schema = assign(LedgerState()).iceberg_schema
    required = {
        schema.find_column_name(field_id) for field_id in schema.field_ids if schema.find_field(field_id).required
    }
    assert required == {"headers.element", "headers.element.key"}


def test_a_version_is_rebuilt_from_its_json() -> None:
    state = LedgerState()
    rows = []
    for body in (
        "int32 a = 1; A m = 2; message A { A again = 1; }",
        "int64 a = 1;",
        "string renamed = 1; int32 z = 9;",
    ):
        assigned = assign(state, key=fields(body), value=fields(body))
        state = assigned.state
        rows.append(assigned.row)
    for row, version in zip(rows, state.versions, strict=True):
        assert json.loads(version.mapping) == row.to_json()
        again = row_mapping_from_text(version.mapping)
        assert again == row
        assert again.arrow_schema.equals(row.arrow_schema, check_metadata=True)


def test_rebuilt_mapping_encodes_values_of_every_version() -> None:
    state, written = LedgerState(), []
    for body, value in (
        ("int32 a = 1; string old = 2;", {"a": 7, "old": "x"}),
        ("int64 a = 1; string new = 2; map<string, M> m = 3;", {"a": -1, "new": "y", "m": {"k": {"a": 5}}}),
        ("repeated string a = 1; bytes b = 4;", {"a": ["p", "q"], "b": b"\x00"}),
    ):
        source = fields(body)
        assigned = assign(state, value=source)
        state = assigned.state
        data = GetMessageClass(find_descriptor(source))(**value).SerializeToString()
        rows = assigned.row.value.decode(pa.array([data, None, b""]))
        assert rows.field("__raw__").null_count == 3
        written.append((assigned.version, rows, [data, None, b""]))
    for version, rows, values in written:
        stored = next(item for item in state.versions if item.version == version)
        mapping = row_mapping_from_json(json.loads(stored.mapping)).value
        assert mapping.encode(rows).to_pylist() == values


def test_a_newer_format_is_refused() -> None:
    data = assign(LedgerState()).row.to_json() | {"format": 2}
    with pytest.raises(DescriptorError, match="newer archiver"):
        row_mapping_from_json(data)


def test_ids_reach_the_parquet_file() -> None:
    row = assign(LedgerState(), value=fields("repeated M a = 1; map<string, int32> b = 2;")).row
    sink = io.BytesIO()
    pq.write_table(row.arrow_schema.empty_table(), sink)
    parquet = pq.ParquetFile(sink).schema_arrow
    assert parquet.equals(row.arrow_schema)
    assert ids_of(parquet) == ids_of(row.arrow_schema)


def ids_of(schema: pa.Schema) -> list[bytes]:
    def below(field: pa.Field) -> list[bytes]:
        kind = field.type
        if pa.types.is_map(kind):
            inner = [kind.key_field, kind.item_field]
        elif pa.types.is_list(kind):
            inner = [kind.value_field]
        else:
            inner = list(kind) if pa.types.is_struct(kind) else []
        return [field.metadata[b"PARQUET:field_id"], *(result for value in inner for result in below(value))]

    return [result for field in schema for result in below(field)]


def test_raw_rows() -> None:
    row = RowMapping(key=RawMapping(raw_id=100), value=RawMapping(raw_id=101), schema_version=1)
    assert row.arrow_schema.field("key").type.names == ["__raw__"]
    assert row == row_mapping_from_json(row.to_json())
