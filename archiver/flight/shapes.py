"""The shape of a stream's batches: records with `key` and `value`, or rows of the topic's columns."""

from __future__ import annotations

from typing import Final, Literal, Protocol, TypeAlias

import pyarrow as pa

from archiver.errors import BadBatch
from archiver.flight.column_types import columns_of
from archiver.flight.record_rows import check_schema, record_rows
from archiver.flight.typed_rows import TypedRows
from archiver.intake.batches import ROW_COLUMNS, RowsVersion
from archiver.intake.row_encoding import RowEncoding

ShapeName: TypeAlias = Literal["records", "rows"]
RECORDS: Final[ShapeName] = "records"
ROWS: Final[ShapeName] = "rows"
SHAPES: Final = (RECORDS, ROWS)


class BatchShape(Protocol):
    def records(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch's records, in order. Raises BadBatch, which names the column."""

    def follows(self, encoding: RowEncoding) -> bool:
        """Whether the shape is up to date."""

    @property
    def takes_dictionaries(self) -> bool: ...

    @property
    def schema_version(self) -> RowsVersion | None:
        """What encodes values. None if the client did."""


class RecordBytes:
    """Keys and values are taken as they are."""

    schema_version: Final = None
    takes_dictionaries: Final = False

    def records(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return record_rows(batch)

    def follows(self, encoding: RowEncoding) -> bool:  # noqa: ARG002 - bytes need no mapping
        return True


def shape_of(schema: pa.Schema, encoding: RowEncoding, *, name: ShapeName | None, most_bytes: int) -> BatchShape:
    """Find the shape by the schema, if the client doesn't name it. Raises BadBatch."""
    try:
        return _shape_of(schema, encoding, name=name, most_bytes=most_bytes)
    except UnicodeDecodeError:
        raise BadBatch("the schema has names that are not UTF-8") from None


def _shape_of(schema: pa.Schema, encoding: RowEncoding, *, name: ShapeName | None, most_bytes: int) -> BatchShape:
    if len(set(schema.names)) < len(schema.names):
        raise BadBatch("the schema has two columns of one name")
    if name is None:
        name = _name_by(schema, encoding)
    if name == ROWS:
        return TypedRows(schema, encoding, most_bytes=most_bytes)
    check_schema(schema)
    return RecordBytes()


def _name_by(schema: pa.Schema, encoding: RowEncoding) -> ShapeName:
    """Records if both shapes fit: the topic's schema may have got a column `value` since the client was written."""
    sent = set(schema.names)
    if not sent <= set(ROW_COLUMNS.names):
        return ROWS
    try:
        check_schema(schema)
    except BadBatch:
        are_columns = sent <= {field.name for field in columns_of(encoding.row.value.arrow_type)}
        return ROWS if encoding.refusal is None and are_columns else RECORDS
    return RECORDS
