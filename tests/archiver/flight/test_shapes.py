"""Which shape a stream has: by its schema, or by the client's word."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from archiver.errors import BadBatch
from archiver.flight.record_rows import check_schema
from archiver.flight.shapes import RECORDS, ROWS, ShapeName, shape_of
from archiver.flight.typed_rows import TypedRows
from archiver.intake.row_encoding import RowEncoding
from tests.support.intake.encodings import MOST_BYTES, RAW, avro, encoding_of, json_schema

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TEXTS = encoding_of(json_schema(value={"type": "string"}, key={"type": "string"}))
MEASURED = encoding_of(avro(device="string", value="double", timestamp="long"))
BYTES = encoding_of(avro(value="bytes"))
NUMBERS = encoding_of(json_schema(value={"type": "number"}))


@pytest.mark.parametrize(
    ("schema", "encoding", "name", "is_rows"),
    [
        ({"value": pa.binary()}, RAW, None, False),
        ({"value": pa.binary(), "key": pa.string()}, NUMBERS, None, False),
        ({"value": pa.float64()}, NUMBERS, None, True),
        ({"value": pa.binary(), "timestamp": pa.timestamp("ms")}, MEASURED, None, False),
        ({"value": pa.binary()}, BYTES, None, False),
        ({"value": pa.string()}, TEXTS, None, False),
        ({"value": pa.string()}, TEXTS, RECORDS, False),
        ({"value": pa.string()}, TEXTS, ROWS, True),
        ({"key": pa.string()}, TEXTS, None, True),
        ({"value": pa.string(), "__key__": pa.string()}, TEXTS, None, True),
    ],
)
def test_the_columns_choose_the_shape(
    schema: dict[str, Any], encoding: RowEncoding, name: ShapeName | None, is_rows: bool
) -> None:
    shape = shape_of(pa.schema(schema), encoding, name=name, most_bytes=MOST_BYTES)
    assert isinstance(shape, TypedRows) is is_rows


def test_two_columns_of_one_name_are_refused() -> None:
    schema = pa.schema([("value", pa.binary()), ("value", pa.binary())])
    with pytest.raises(BadBatch, match="the schema has two columns of one name"):
        shape_of(schema, RAW, name=None, most_bytes=MOST_BYTES)


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        (pa.schema([("value", pa.binary()), ("key", pa.binary())]), b"key"),
        (pa.schema([("value", pa.binary()), ("headers", HEADERS)]), b"key"),
        (pa.schema([("value", pa.binary()), ("timestamp", pa.timestamp("ms", "Utc/Zone"))]), b"Zone"),
        (pa.schema([("value", pa.struct([("other", pa.int8())]))]), b"other"),
    ],
    ids=["column", "header", "time zone", "member"],
)
def test_names_that_are_not_utf8_are_refused(schema: pa.Schema, name: bytes) -> None:
    changed = pa.ipc.read_schema(pa.py_buffer(bytes(schema.serialize()).replace(name, b"\xff" * len(name))))
    encoding = encoding_of(json_schema(value={"type": "object", "properties": {"x": {"type": "string"}}}))
    with pytest.raises(BadBatch, match="the schema has names that are not UTF-8"):
        shape_of(changed, encoding, name=None, most_bytes=MOST_BYTES)


def test_a_changed_mapping_needs_another_shape() -> None:
    schema = pa.schema({"x": pa.string()})
    encoding = encoding_of(json_schema(x={"type": "string"}))
    shape = shape_of(schema, encoding, name=None, most_bytes=MOST_BYTES)
    assert shape.follows(encoding)
    assert shape.follows(encoding_of(json_schema(x={"type": "string"})))
    assert not shape.follows(encoding_of(json_schema(x={"type": "string"}, y={"type": "string"})))


def test_records_do_not_depend_on_a_mapping() -> None:
    schema = pa.schema({"value": pa.binary()})
    check_schema(schema)
    assert shape_of(schema, RAW, name=None, most_bytes=MOST_BYTES).follows(NUMBERS)
