"""Partitions of rows by columns. Rows without the column have null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.conversions import to_bytes
from pyiceberg.types import BinaryType, BooleanType, DecimalType, IntegerType, LongType, PrimitiveType, StringType

from catalog.partitioning import Partitioning, function_of
from schema_mapping.columns.arrow import field_id_of

Codes: TypeAlias = npt.NDArray[np.int64]
Values: TypeAlias = tuple[bytes | None, ...]

_PLAIN: Final = {
    pa.date32(): pa.int32(),
    pa.time64("us"): pa.int64(),
    pa.timestamp("us", tz="UTC"): pa.int64(),
}
_TYPES: Final[dict[pa.DataType, PrimitiveType]] = {
    pa.bool_(): BooleanType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
}


@dataclass(frozen=True, slots=True)
class Sorted:
    """`order` are former indexes, None if nothing moved. Partition `values[n]` starts at `starts[n]`."""

    order: Codes | None
    values: tuple[Values, ...]
    starts: Codes


class RowPartitions:
    def __init__(self, partitioning: Partitioning, schema: pa.Schema) -> None:
        self.partitioning = partitioning
        self._columns = tuple((column, _path_to(column.source_id, schema)) for column in partitioning.columns)

    def sort(self, rows: pa.RecordBatch, ingest_value: int | None) -> Sorted:
        """Sort by partition, stably. `ingest_value` is the time partition; None computes it."""
        codes = np.zeros(rows.num_rows, np.int64)
        tuples: list[Values] = [()]
        for column, path in self._columns:
            if column is self.partitioning.time and ingest_value is not None:
                value: bytes | None = to_bytes(IntegerType(), ingest_value)
                tuples = [(*values, value) for values in tuples]
            elif path is None:
                tuples = [(*values, None) for values in tuples]
            else:
                codes, tuples = _combined(codes, tuples, transformed(column.transform, _column(rows, path)))
        return _sorted(codes, tuple(tuples))


def transformed(transform: str, values: pa.Array) -> pa.Array:
    if transform == "identity":
        return values
    from pyiceberg_core import transform as iceberg  # tables that are partitioned by time alone do without

    function, width = function_of(transform)
    compute: Any = getattr(iceberg, function)
    return compute(values, int(width)) if width else compute(values)


def in_bytes(values: pa.Array) -> list[bytes | None]:
    plain = values.cast(_PLAIN[values.type]) if values.type in _PLAIN else values
    if pa.types.is_decimal(plain.type):
        kind: PrimitiveType = DecimalType(plain.type.precision, plain.type.scale)
    else:
        kind = _TYPES[plain.type]
    return [None if item is None else to_bytes(kind, item) for item in plain.to_pylist()]


def _combined(codes: Codes, tuples: Sequence[Values], column: pa.Array) -> tuple[Codes, list[Values]]:
    coded = column.dictionary_encode(null_encoding="encode")
    more = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    width = len(coded.dictionary)
    pairs, combined = np.unique(codes * width + more, return_inverse=True)
    # Only values that occur: a dictionary may have more.
    used, places = np.unique(pairs % width, return_inverse=True)
    values = in_bytes(coded.dictionary.take(pa.array(used)))
    after = [
        (*tuples[before], values[position])
        for before, position in zip((pairs // width).tolist(), places.tolist(), strict=True)
    ]
    return combined.reshape(-1), after


def _sorted(codes: Codes, tuples: Sequence[Values]) -> Sorted:
    counts = np.bincount(codes, minlength=len(tuples))
    starts = np.concatenate([[0], np.cumsum(counts)])
    order = None if bool(np.all(codes[:-1] <= codes[1:])) else np.argsort(codes, kind="stable")
    return Sorted(order, tuple(tuples), starts)


def _path_to(field_id: int, schema: pa.Schema) -> tuple[int, ...] | None:
    def search(fields: Sequence[pa.Field]) -> tuple[int, ...] | None:
        for index, field in enumerate(fields):
            if field_id_of(field) == field_id:
                return (index,)
            if pa.types.is_struct(field.type) and (below := search(list(field.type))) is not None:
                return (index, *below)
        return None

    return search(list(schema))


def _column(rows: pa.RecordBatch, path: tuple[int, ...]) -> pa.Array:
    first, *below = path
    column = rows.column(first)
    return pc.struct_field(column, below) if below else column
