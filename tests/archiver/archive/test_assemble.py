"""Rows of one file, assembled."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from archiver.archive.assemble import Assembler
from archiver.archive.mappings import KnownMappings
from archiver.archive.records import KAFKA_IDS
from archiver.storage.row_columns import field_id


def with_kafka(rows: pa.RecordBatch, fields: list[pa.Field]) -> pa.RecordBatch:
    kafka = rows.column("kafka")
    struct = pa.StructArray.from_arrays([kafka.field(field.name) for field in fields], fields=fields)
    at = rows.schema.get_field_index("kafka")
    return rows.set_column(at, rows.schema.field(at).with_type(struct.type), struct)


def test_columns_are_found_however_the_rows_before_were_read(archive: Any) -> None:
    rows = archive.batch([archive.row(offset=3, partition=2), archive.row(offset=4, partition=2)])
    every = list(rows.column("kafka").type)[::-1]  # as another engine may write them
    some = [value for value in every if field_id(value) in KAFKA_IDS]
    assert len(some) < len(every)

    assembler = Assembler("s3://lake/orders.parquet", rows.schema, KnownMappings("orders"))
    expected = assembler.kafka(rows)
    for fields in (some, every, some):
        assert assembler.kafka(with_kafka(rows, fields)) == expected
    assert expected.field("offset").to_pylist() == [3, 4]
