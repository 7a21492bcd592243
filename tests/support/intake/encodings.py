"""Encodings of rows, by schemas as text."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from archiver.flight.shapes import ShapeName, shape_of
from archiver.intake.row_encoding import RowEncoding
from schema_mapping import DeclaredSchema, LedgerState, assign
from schema_mapping.avro.schema import AvroSchema
from schema_mapping.json.schema import JsonSchema

MOST_BYTES = 1 << 20
RAW = RowEncoding(row=assign(LedgerState()).row, refusal="the topic's values have no schema")


def encoding_of(value: DeclaredSchema, **settings: Any) -> RowEncoding:
    """`key` is the schema of keys."""
    return RowEncoding(row=assign(LedgerState(), value=value, key=settings.pop("key", None)).row, **settings)


def avro(**fields: Any) -> AvroSchema:
    declared = [{"name": name, "type": kind} for name, kind in fields.items()]
    return AvroSchema.of(json.dumps({"type": "record", "name": "R", "fields": declared}))


def json_schema(**properties: Any) -> JsonSchema:
    return JsonSchema.of(json.dumps({"type": "object", "properties": properties}))


def records_of(
    batch: pa.RecordBatch, encoding: RowEncoding, *, name: ShapeName | None = None, most_bytes: int = MOST_BYTES
) -> pa.RecordBatch:
    """The records of a batch that went over the wire."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    (received,) = pa.ipc.open_stream(sink.getvalue())
    return shape_of(received.schema, encoding, name=name, most_bytes=most_bytes).records(received)


def values_of(batch: pa.RecordBatch, encoding: RowEncoding, **options: Any) -> list[bytes]:
    values: list[bytes] = records_of(batch, encoding, **options).column("value").to_pylist()
    return values
