"""Counts how well the schema fits rows, by the columns `__unrecognized__`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.storage.row_columns import field_id, list_values
from catalog.recognition import Fit, Recognition
from schema_mapping import names
from schema_mapping.row import RowMapping
from schema_mapping.value_format import ValueMapping

Mask: TypeAlias = npt.NDArray[np.bool_]
Sizes: TypeAlias = npt.NDArray[np.int64]

UNAPPROVED_SCHEMA: Final = "unapproved_schema@0"
"""The error of a value that fits only a schema change that waits for approval (`unapproved`)."""

_RECORD_PARTS: Final = {names.KEY: "key", names.VAL: "value"}


@dataclass(frozen=True, slots=True)
class UnknownFields:
    """`below` is keyed by the index of each field with unknown fields below it."""

    own: int | None
    below: tuple[tuple[int, UnknownFields], ...]

    @classmethod
    def of_struct(cls, kind: pa.StructType, unknown_ids: frozenset[int]) -> Self | None:
        own, below = None, []
        for index, field in enumerate(kind):
            if field.name == names.UNRECOGNIZED and field_id(field) in unknown_ids:
                own = index
            nested = _held_struct(field.type)
            fields_below = None if nested is None else cls.of_struct(nested, unknown_ids)
            if fields_below is not None:
                below.append((index, fields_below))
        return cls(own, tuple(below)) if below or own is not None else None

    def sizes(self, rows: pa.StructArray) -> Sizes | None:
        sizes: Sizes | None = None
        if self.own is not None and _set(own := rows.field(self.own)):
            sizes = _sizes(own)
        for index, below in self.below:
            more = below.sizes_below(rows.field(index))
            if more is not None:
                sizes = more if sizes is None else sizes + more
        return sizes

    def sizes_below(self, column: pa.Array) -> Sizes | None:
        """Also for lists or maps of structs."""
        if pa.types.is_struct(column.type):
            return self.sizes(column)
        sizes = self.sizes(column.items if pa.types.is_map(column.type) else column.values)
        if sizes is None:
            return None
        before = np.concatenate([[0], np.cumsum(sizes)])[np.asarray(column.offsets, np.int64)]
        return np.asarray(np.diff(before), np.int64)


def _held_struct(kind: pa.DataType) -> pa.StructType | None:
    if pa.types.is_map(kind):
        kind = kind.item_type
    elif (values := list_values(kind)) is not None:
        kind = values.type
    return kind if pa.types.is_struct(kind) else None


class Recognizer:
    """`schema` may have more columns than `row`."""

    def __init__(self, row: RowMapping, schema: pa.Schema | None = None) -> None:
        mappings = {names.KEY: row.key, names.VAL: row.value}
        schema = schema or row.arrow_schema
        self._parts = {
            part: _PartColumns.of_struct(schema.field(part).type, mapping)
            for part, mapping in mappings.items()
            if mapping.arrow_type.get_field_index(names.ERR) >= 0
        }

    def count(self, rows: pa.RecordBatch, records: pa.RecordBatch) -> Recognition:
        counts = {
            _RECORD_PARTS[part]: part_columns.count(rows.column(part), records.column(_RECORD_PARTS[part]))
            for part, part_columns in self._parts.items()
        }
        return Recognition(**counts)

    def unknown(self, rows: pa.StructArray, part: str) -> Mask | None:
        columns = self._parts.get(part)
        sizes = None if columns is None or columns.unknown is None else columns.unknown.sizes(rows)
        return None if sizes is None else sizes > 0


@dataclass(frozen=True, slots=True)
class _PartColumns:
    unknown: UnknownFields | None
    error: int
    raw: int
    prefix: int
    keeps_raw: bool

    @classmethod
    def of_struct(cls, kind: pa.StructType, mapping: ValueMapping) -> Self:
        return cls(
            unknown=UnknownFields.of_struct(kind, mapping.unknown_ids),
            error=kind.get_field_index(names.ERR),
            raw=kind.get_field_index(names.RAW),
            prefix=kind.get_field_index(names.PREFIX),
            keeps_raw=mapping.keep_raw,
        )

    def count(self, rows: pa.StructArray, values: pa.Array) -> Fit:
        unknown = None if self.unknown is None else self.unknown.sizes(rows)
        unapproved = _count(rows.field(self.error), UNAPPROVED_SCHEMA)
        return Fit(
            values=len(values) - values.null_count,
            size_bytes=pc.sum(pc.binary_length(values)).as_py() or 0,
            failed=_set(rows.field(self.error)) - unapproved,
            unapproved=unapproved,
            raw=0 if self.keeps_raw else _set(rows.field(self.raw)),
            unknown=0 if unknown is None else int((unknown > 0).sum()),
            unknown_bytes=0 if unknown is None else int(unknown.sum()),
            blank=0 if unknown is None else self._blank(rows, values),
        )

    def _blank(self, rows: pa.StructArray, values: pa.Array) -> int:
        sent = _sizes(values) - _sizes(rows.field(self.prefix)) if self.prefix >= 0 else _sizes(values)
        blank = np.zeros(len(rows), np.bool_)
        for column in self._whole_values(rows):
            if _set(column):
                blank |= (_sizes(column) == sent) & (sent > 0)
        return int(blank.sum())

    def _whole_values(self, rows: pa.StructArray) -> Iterator[pa.Array]:
        assert self.unknown is not None
        if self.unknown.own is not None:
            yield rows.field(self.unknown.own)
        for index, below in self.unknown.below:
            if below.own is not None and pa.types.is_struct(rows.type[index].type):
                yield rows.field(index).field(below.own)


def _set(column: pa.Array) -> int:
    return len(column) - int(column.null_count)


def _count(column: pa.Array, text: str) -> int:
    return int(pc.sum(pc.equal(column, text)).as_py() or 0) if _set(column) else 0


def _sizes(column: pa.Array) -> Sizes:
    if column.null_count == len(column):
        return np.zeros(len(column), np.int64)
    return np.asarray(pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False), np.int64)
