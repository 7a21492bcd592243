"""Which partition each row belongs to, in a table that is partitioned by columns.

Transforms are computed on whole Arrow columns by Iceberg's Rust library. A row without the column, because its value is
raw, a tombstone or of a schema that lacks it, is in the partition of null. A Python object is made for each partition,
never for each row.
"""

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

from catalog.partitioning import Partitioning
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
    """Rows in the order of their partitions, and within one in the order that they came in.

    `order` are their places before, None where nothing moved. Partition `values[n]` has the rows from `starts[n]` up to
    `starts[n + 1]`.
    """

    order: Codes | None
    values: tuple[Values, ...]
    starts: Codes


class RowPartitions:
    """Tells the partitions of rows with the columns of `schema`."""

    def __init__(self, partitioning: Partitioning, schema: pa.Schema) -> None:
        self.partitioning = partitioning
        self._columns = tuple((each, _path_to(each.source_id, schema)) for each in partitioning.columns)

    def sort(self, rows: pa.RecordBatch, ingest_value: int | None) -> Sorted:
        """Sort rows by partition.

        All are in one time partition of the ingest timestamp, with this value. None computes it for each row.
        """
        codes = np.zeros(rows.num_rows, np.int64)
        tuples: list[Values] = [()]
        for column, path in self._columns:
            if column is self.partitioning.time and ingest_value is not None:
                value: bytes | None = to_bytes(IntegerType(), ingest_value)
                tuples = [(*each, value) for each in tuples]
            elif path is None:
                tuples = [(*each, None) for each in tuples]
            else:
                codes, tuples = _combined(codes, tuples, transformed(column.transform, _column(rows, path)))
        return _sorted(codes, tuple(tuples))


def transformed(transform: str, values: pa.Array) -> pa.Array:
    """Iceberg's transform of each value, null for null."""
    if transform == "identity":
        return values
    from pyiceberg_core import transform as iceberg  # tables that are partitioned by time alone do without

    function, _, width = transform.rstrip("]").partition("[")
    compute: Any = getattr(iceberg, function)
    return compute(values, int(width)) if width else compute(values)


def in_bytes(values: pa.Array) -> list[bytes | None]:
    """Each value in Iceberg's single-value serialization."""
    plain = values.cast(_PLAIN[values.type]) if values.type in _PLAIN else values
    if pa.types.is_decimal(plain.type):
        kind: PrimitiveType = DecimalType(plain.type.precision, plain.type.scale)
    else:
        kind = _TYPES[plain.type]
    return [None if each is None else to_bytes(kind, each) for each in plain.to_pylist()]


def _combined(codes: Codes, tuples: Sequence[Values], column: pa.Array) -> tuple[Codes, list[Values]]:
    """The codes and partitions of rows after one more column."""
    coded = column.dictionary_encode(null_encoding="encode")
    more = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    width = len(coded.dictionary)
    found, combined = np.unique(codes * width + more, return_inverse=True)
    # Only values that occur: a dictionary may have others.
    used, places = np.unique(found % width, return_inverse=True)
    values = in_bytes(coded.dictionary.take(pa.array(used)))
    after = [
        (*tuples[before], values[place])
        for before, place in zip((found // width).tolist(), places.tolist(), strict=True)
    ]
    return combined.reshape(-1), after


def _sorted(codes: Codes, tuples: Sequence[Values]) -> Sorted:
    counts = np.bincount(codes, minlength=len(tuples))
    starts = np.concatenate([[0], np.cumsum(counts)])
    order = None if bool(np.all(codes[:-1] <= codes[1:])) else np.argsort(codes, kind="stable")
    return Sorted(order, tuple(tuples), starts)


def _path_to(field_id: int, schema: pa.Schema) -> tuple[int, ...] | None:
    """The places of a column and of the structs that it is in. None where the rows lack it."""

    def search(fields: Sequence[pa.Field]) -> tuple[int, ...] | None:
        for place, field in enumerate(fields):
            if field_id_of(field) == field_id:
                return (place,)
            if pa.types.is_struct(field.type) and (below := search(list(field.type))) is not None:
                return (place, *below)
        return None

    return search(list(schema))


def _column(rows: pa.RecordBatch, path: tuple[int, ...]) -> pa.Array:
    first, *below = path
    column = rows.column(first)
    return pc.struct_field(column, below) if below else column
