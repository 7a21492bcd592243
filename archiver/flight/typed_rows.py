"""The rows shape: the topic's columns become records. Values are the mapping's canonical encoding.

Each value is decoded again before it is taken in: what the table will have is what the client sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from archiver.errors import BadBatch, RowsRefused
from archiver.flight.column_casts import ColumnPlace, as_column, as_struct
from archiver.flight.column_sizes import dictionary_bytes, element_count, null_bytes
from archiver.flight.column_types import misfits
from archiver.flight.read_back import first_difference
from archiver.flight.record_rows import bytes_of, check_field, headers_of, times_of
from archiver.intake.batches import ROW_COLUMNS, RowsVersion
from archiver.intake.row_encoding import RowEncoding
from schema_mapping import names
from schema_mapping.errors import KernelError, RowsTooLargeError
from schema_mapping.value_format import RequiresFields, ValueMapping

KEY, HEADERS, TIMESTAMP = "__key__", "__headers__", "__timestamp__"
"""Columns of a record beside its value."""
_EXTRAS: Final = {KEY: "key", HEADERS: "headers", TIMESTAMP: "timestamp"}
_MOST_MISFITS: Final = 10
_SLICE: Final = 16 << 10
"""Rows that are encoded together: it bounds the bytes of values that turn out to be too large."""
_ROW_BYTES: Final = 20


class TypedRows:
    """Rows of one schema. Raises RowsRefused, which names all columns that don't fit."""

    def __init__(self, schema: pa.Schema, encoding: RowEncoding, *, most_bytes: int) -> None:
        self.encoding = encoding
        self.schema_version = RowsVersion.of(encoding.row)
        self.takes_dictionaries = True
        self._most_bytes = most_bytes
        self._value, self._key = encoding.row.value, encoding.row.key
        self._has_key_schema = encoding.row.key_schema is not None
        if encoding.refusal is not None:
            raise RowsRefused(f"{encoding.refusal}: send the columns `key`, `value`, `headers` and `timestamp`")
        self._columns = [field.name for field in schema if field.name not in _EXTRAS]
        self._check(schema)

    def follows(self, encoding: RowEncoding) -> bool:
        return self.encoding is encoding or self.encoding.row == encoding.row

    def records(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Raises BadBatch, which names the column and the row."""
        rows = batch.num_rows
        if rows * _ROW_BYTES > self._most_bytes:
            raise BadBatch(f"the batch has {rows:,} rows, and may have {self._most_bytes // _ROW_BYTES:,}")
        self._check_sizes(batch)
        extras = {name: batch.column(name) for name in _EXTRAS if name in batch.schema.names}
        columns = {name: batch.column(name) for name in self._columns}
        values = as_struct(columns, self._value.arrow_type, rows, _place_of(self._value, names.VAL))
        return pa.RecordBatch.from_arrays(
            [
                times_of(extras.get(TIMESTAMP), rows),
                self._keys(values, extras.get(KEY)),
                self._encoded(self._value, values, names.VAL),
                headers_of(extras.get(HEADERS), rows),
            ],
            schema=ROW_COLUMNS,
        )

    def _check(self, schema: pa.Schema) -> None:
        fields = {field.name: field for field in schema}
        changes = list(islice(self._misfits(fields), _MOST_MISFITS))
        if changes:
            raise RowsRefused(f"the columns don't fit the topic's schema: {'; '.join(changes)}")
        for name, kind in _EXTRAS.items():
            if name in fields and not (name == KEY and self._has_key_schema):
                check_field(fields[name], kind)
        if KEY in fields and self.encoding.key_column is not None:
            raise RowsRefused(f"the keys are in the column {self.encoding.key_column}: leave out {KEY}")

    def _misfits(self, fields: dict[str, pa.Field]) -> Iterator[str]:
        yield from misfits(pa.schema([fields[name] for name in self._columns]), self._value.arrow_type, names.VAL)
        if KEY in fields and self._has_key_schema:
            kind = fields[KEY].type
            if kinds.is_struct(kind):
                yield from misfits(kind, self._key.arrow_type, names.KEY)
            else:
                yield f"{KEY} must be a struct of the key's columns, and is {str(kind)[:200]}"

    def _keys(self, values: pa.StructArray, sent: pa.Array | None) -> pa.Array:
        if self.encoding.key_column is not None:
            column = values.field(values.type.get_field_index(self.encoding.key_column))
            return bytes_of(column.cast(pa.string()) if kinds.is_integer(column.type) else column, len(values), KEY)
        if sent is not None and self._has_key_schema:
            return self._encoded(
                self._key, as_column(sent, self._key.arrow_type, _place_of(self._key, names.KEY)), names.KEY
            )
        return bytes_of(sent, len(values), KEY)

    def _check_sizes(self, batch: pa.RecordBatch) -> None:
        """Raise BadBatch before a small message becomes large columns. An element takes a byte or more of a value."""
        sizes = {
            "bytes as plain columns": sum(map(dictionary_bytes, batch.columns)),
            "elements in lists": sum(map(element_count, batch.columns)),
            "bytes of null columns": sum(self._null_bytes(batch)),
        }
        for words, size in sizes.items():
            if size > self._most_bytes:
                raise BadBatch(
                    f"the batch has {size:,} {words}, and may have {self._most_bytes:,}: send smaller batches"
                )

    def _null_bytes(self, batch: pa.RecordBatch) -> Iterator[int]:
        columns = pa.StructArray.from_arrays([batch.column(name) for name in self._columns], self._columns)
        yield null_bytes(columns if self._columns else pa.nulls(batch.num_rows), self._value.arrow_type)
        if KEY in batch.schema.names and self._has_key_schema:
            yield null_bytes(batch.column(KEY), self._key.arrow_type)

    def _encoded(self, mapping: ValueMapping, rows: pa.StructArray, path: str) -> pa.Array:
        parts, size = [pa.array([], pa.binary())], 0
        for start in range(0, len(rows), _SLICE):
            part = rows.slice(start, _SLICE)
            try:
                values = _checked_values(mapping, part, path)
            except RowsTooLargeError:
                raise BadBatch("a value has more elements than a column takes: send smaller batches") from None
            except KernelError as error:
                raise _placed(BadBatch(f"a row can't be encoded: {error.message}", **error.context), start) from None
            except BadBatch as error:
                raise _placed(error, start) from None
            size += values.nbytes
            if size > self._most_bytes:
                most = f"`flight.max_message_size` ({self._most_bytes:,} bytes)"
                raise BadBatch(f"the values need more than {most}: send smaller batches")
            parts.append(values)
        return pa.concat_arrays(parts)


def _place_of(mapping: ValueMapping, name: str) -> ColumnPlace:
    return ColumnPlace(name, mapping.required_ids if isinstance(mapping, RequiresFields) else frozenset())


def _checked_values(mapping: ValueMapping, rows: pa.StructArray, path: str) -> pa.Array:
    """Encode rows. Raise BadBatch if the table would have other values than the client sent."""
    values = mapping.encode(rows)
    if pa.types.is_large_binary(values.type):
        raise RowsTooLargeError("the values need more than 2 GiB")
    read = mapping.decode(values)
    errors = read.field(read.type.get_field_index(names.ERR))
    if errors.null_count < len(errors):
        row = int(pc.index(errors.is_valid(), True).as_py())
        raise BadBatch(f"a row is no value of the topic's schema ({errors[row].as_py()})", row=row)
    difference = first_difference(rows, read, path)
    if difference is not None:
        raise BadBatch(
            "a value would be read back as another one: two members of a oneof or union are set, a map has a key twice,"
            " or a text isn't in the schema's own form",
            row=difference.row,
            column=difference.column,
        )
    return values


def _placed(error: BadBatch, start: int) -> BadBatch:
    row = error.context.get("row")
    return error if row is None else BadBatch(error.message, **{**error.context, "row": int(row) + start})
