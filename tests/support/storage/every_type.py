"""Tables of all types and encodings, by the archiver's writer and Arrow's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from archiver.storage.parquet.bloom_filters import can_have_filter
from archiver.storage.parquet.columns.file_writer import FileWriter
from archiver.storage.parquet.columns.plan import ColumnPlan, Encoding
from archiver.storage.parquet.leaves import ParquetLeaf, leaves_of
from tests.support.servers.stack import Stack, unique
from tests.support.storage.parquet_judges import ArrowWriter, WriterClass, written
from tests.support.storage.random_rows import Rows, encodings_of, rows_of

KINDS: Final[Mapping[str, IcebergType]] = {
    "flag": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "small_decimal": DecimalType(7, 2),
    "decimal": DecimalType(18, 6),
    "large_decimal": DecimalType(38, 10),
    "day": DateType(),
    "moment": TimestampType(),
    "instant": TimestamptzType(),
    "text": StringType(),
    "octets": BinaryType(),
    "fixed": FixedType(5),
    "uuid": UUIDType(),
}
"""Types that Spark knows, too: it has no time of day, and no time in nanoseconds."""
WRITERS: Final[tuple[WriterClass, ...]] = (FileWriter, ArrowWriter)
SIZES: Final = ((20_500, 7), (900, 1_000))
"""Rows of the batches of each row group."""
COUNT: Final = sum(map(sum, SIZES))
_TURNS: Final = 4
"""A column of each kind for each encoding that a type may have."""


@dataclass(frozen=True, slots=True)
class Written:
    rows: Rows
    places: tuple[str, ...]


def written_tables(stack: Stack, kinds: Mapping[str, IcebergType] = KINDS) -> Written:
    catalog = stack.catalog()
    catalog.create_namespace_if_not_exists("columns")
    names = [f"columns.{unique('written')}" for _ in WRITERS]
    made = [catalog.create_table(name, _schema(kinds)) for name in names]
    schema = pa.schema(list(map(_small_field, schema_to_pyarrow(made[0].schema(), include_field_ids=True))))
    rows = rows_of(schema, SIZES, 11, is_tame=True)
    for table, writer in zip(made, WRITERS, strict=True):
        _add(table, file_of(writer, rows))
    return Written(rows, tuple(names))


def file_of(writer: WriterClass, rows: Rows) -> bytes:
    return written(writer, rows.schema, rows.groups, [_plan(leaf) for leaf in leaves_of(rows.schema)])


def conditions(rows: Rows) -> Iterator[str]:
    for field in rows.schema:
        kind = field.type
        if field.name[-1] not in "01" or not (pa.types.is_integer(kind) or pa.types.is_string(kind)):
            continue
        for table, position in ((rows.tables[0], 17), (rows.tables[0], 20_499), (rows.tables[1], 500)):
            value = table.column(field.name)[position].as_py()
            if value is not None:
                literal = repr(value) if isinstance(value, int) else "'{}'".format(value.replace("'", "''"))
                yield from (f"{field.name} {sign} {literal}" for sign in ("=", "<", ">="))


def _schema(kinds: Mapping[str, IcebergType]) -> Schema:
    few = {name: kinds[name] for name in ("int", "text", "large_decimal", "flag")}
    return Schema(
        *_fields(1, kinds),
        NestedField(500, "val", StructType(*_fields(1_000, kinds))),
        NestedField(501, "many", ListType(502, StructType(*_fields(2_000, few)), element_required=False)),
        NestedField(503, "pairs", MapType(504, StringType(), 505, LongType(), value_required=False)),
        NestedField(506, "lists", ListType(507, ListType(508, StringType(), element_required=False))),
    )


def _fields(first: int, kinds: Mapping[str, IcebergType]) -> tuple[NestedField, ...]:
    """PySpark can't have required fields below nulls."""
    turns = [(name, kind, turn) for name, kind in kinds.items() for turn in range(_TURNS)]
    return tuple(
        NestedField(first + at, f"{name}_{turn}", kind, required=turn == 1 and first == 1)
        for at, (name, kind, turn) in enumerate(turns)
    )


def _small(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_small_field(value) for value in kind])
    if pa.types.is_map(kind):
        return pa.map_(_small_field(kind.key_field), _small_field(kind.item_field))
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(_small_field(kind.value_field))
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)


def _small_field(field: pa.Field) -> pa.Field:
    return field.with_type(_small(field.type))


def _plan(leaf: ParquetLeaf) -> ColumnPlan:
    """At the top, only encodings of Iceberg's vectorized reader."""
    existing = encodings_of(leaf.type) if "." in leaf.name else [Encoding.DICTIONARY, Encoding.PLAIN]
    turn = int(leaf.name[-1]) if leaf.name[-1].isdigit() else 0
    return ColumnPlan(
        leaf=leaf,
        encoding=existing[turn % len(existing)],
        level=None if turn == _TURNS - 1 else 1,
        has_statistics=True,
        filter_size=1 << 12 if can_have_filter(leaf) and turn % 2 else 0,
    )


def _add(table: Any, data: bytes) -> None:
    path = f"{table.location()}/data/written.parquet"
    with table.io.new_output(path).create() as stream:
        stream.write(data)
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=COUNT,
        file_size_in_bytes=len(data),
    )
    file.spec_id = table.spec().spec_id
    with table.transaction() as change, change.update_snapshot().fast_append() as producer:
        producer.append_data_file(file)
