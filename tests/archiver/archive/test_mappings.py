"""Values are encoded with their row's mapping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, message_factory
from pyiceberg.io.pyarrow import schema_to_pyarrow

from archiver.errors import ReplayError
from schema_mapping import LedgerState, MappingOptions, RowMapping, SourceSchema, assign
from schema_mapping.protobuf.descriptors import find_descriptor
from tests.support.archive.lake import Lake, schema_of

FIELD = descriptor_pb2.FieldDescriptorProto


def source(*fields: tuple[str, int, int]) -> SourceSchema:
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="m", syntax="proto3")
    inner = file.message_type.add(name="Inner")
    for name, number, kind in fields:
        inner.field.add(name=name, number=number, type=kind, label=FIELD.LABEL_OPTIONAL)
    outer = file.message_type.add(name="Outer")
    outer.field.add(name="id", number=1, type=FIELD.TYPE_INT32, label=FIELD.LABEL_OPTIONAL)
    for name, number, label in (("one", 2, FIELD.LABEL_OPTIONAL), ("many", 3, FIELD.LABEL_REPEATED)):
        outer.field.add(name=name, number=number, type=FIELD.TYPE_MESSAGE, type_name=".m.Inner", label=label)
    return SourceSchema(
        descriptor_set=descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(), message="m.Outer"
    )


VERSIONS = (
    source(("a", 1, FIELD.TYPE_INT32), ("b", 2, FIELD.TYPE_STRING)),
    source(("renamed", 1, FIELD.TYPE_INT64), ("b", 2, FIELD.TYPE_STRING), ("c", 3, FIELD.TYPE_FLOAT)),
    source(("b", 1, FIELD.TYPE_INT64), ("renamed", 2, FIELD.TYPE_STRING), ("c", 3, FIELD.TYPE_DOUBLE)),
    source(("b", 1, FIELD.TYPE_BYTES), ("renamed", 2, FIELD.TYPE_STRING)),
)
"""Promoted and renamed; names swapped; another type, and a field removed."""


def versions() -> list[tuple[RowMapping, Any]]:
    state = LedgerState()
    result = []
    for value in VERSIONS:
        assignment = assign(state, key=None, value=value, options=MappingOptions())
        state = assignment.state
        result.append((assignment.row, assignment.iceberg_schema))
    return result


def values_of(version: int, offset: int) -> bytes | None:
    if offset % 7 == 3:
        return (None, b"", b"\xff\xff")[offset % 3]
    message = message_factory.GetMessageClass(find_descriptor(VERSIONS[version]))()
    message.id = offset
    for field in message.DESCRIPTOR.fields_by_name["one"].message_type.fields:
        value = {FIELD.TYPE_STRING: f"s{offset}", FIELD.TYPE_BYTES: b"\xfe%d" % offset}.get(field.type, offset * 3)
        setattr(message.one, field.name, value)
        setattr(message.many.add(), field.name, value)
    return message.SerializeToString(deterministic=True)


def batch(archive: Any, rows: RowMapping, version: int, start: int) -> pa.RecordBatch:
    raw = [
        archive.row(offset=offset, value=values_of(version, offset), schema_version=rows.schema_version)
        for offset in range(start, start + 20)
    ]
    plain = archive.batch(raw)
    values = pa.array([row.value for row in raw], pa.binary())
    val = rows.value.decode(values)
    assert val.field("__raw__").null_count > 0, "columns carry at least some of the values"
    columns = [rows.key.decode(pa.array([None] * 20, pa.binary())), val, plain.column("headers"), plain.column("kafka")]
    return pa.RecordBatch.from_arrays(columns, schema=rows.arrow_schema)


@pytest.fixture
def evolved(tmp_path: Path, archive: Any) -> Lake:
    result = versions()
    lake = Lake(tmp_path / "lake", result[0][0])
    for version, (rows, schema) in enumerate(result):
        if version:
            lake.evolve(schema)
        lake.add(rows, batch(archive, rows, version, version * 20), version * 20, version * 20 + 20)
    return lake


def replayed(lake: Lake, **options: Any) -> list[bytes | None]:
    return [value for record in lake.archive(**options).records(0) for value in record.column("value").to_pylist()]


EXPECTED = [values_of(version, offset) for version in range(4) for offset in range(version * 20, version * 20 + 20)]


def test_each_row_with_its_own_mapping(evolved: Lake):
    assert replayed(evolved) == EXPECTED


class Ledger:
    def row_mapping(self, version: int) -> RowMapping | None:
        return {row.schema_version: row for row, _ in versions()}.get(version)


def as_the_table_is(lake: Lake) -> pa.Table:
    table = lake.load("orders")
    return table.scan().to_arrow().cast(schema_to_pyarrow(table.schema(), include_field_ids=True))


@pytest.mark.parametrize("options", [{}, {"row_group_size": 7}], ids=str)
def test_a_rewrite_into_the_present_columns_changes_nothing(evolved: Lake, options: dict[str, Any]):
    evolved.replace([as_the_table_is(evolved)], **options)
    assert replayed(evolved, registry=lambda *_: Ledger()) == EXPECTED


def test_rows_of_many_versions_in_one_batch(evolved: Lake):
    rows = as_the_table_is(evolved)
    order = [value for start in range(20) for value in range(start, rows.num_rows, 20)]
    evolved.replace([rows.take(pa.array(order))])
    assert replayed(evolved, registry=lambda *_: Ledger()) == EXPECTED


def test_a_column_that_a_rewrite_dropped_is_named(evolved: Lake):
    rows = as_the_table_is(evolved).combine_chunks()
    val = rows.column("val").chunk(0)
    keep = [index for index, field in enumerate(val.type) if field.name != "id"]
    fields = [val.type.field(index) for index in keep]
    smaller = pa.StructArray.from_arrays([val.field(index) for index in keep], fields=fields, mask=val.is_null())
    position = rows.schema.get_field_index("val")
    evolved.replace([rows.set_column(position, rows.schema.field("val").with_type(smaller.type), smaller)])
    with pytest.raises(ReplayError, match=r"gone from the file.*val\.id"):
        replayed(evolved, registry=lambda *_: Ledger())


def test_schemas_differ_as_the_versions_say():
    names = [[field.name for field in schema_of(row).find_field("val.one").field_type.fields] for row, _ in versions()]
    assert names[0][:2] == ["a", "b"]
    assert names[2][:2] == ["b", "renamed"]
