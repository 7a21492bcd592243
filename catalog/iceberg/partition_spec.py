"""Partition specs of columns. Sources are field ids at any depth."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import parse_transform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StructType,
)

from catalog.errors import PartitioningChanged, UnfitPartitioning
from catalog.iceberg.properties import PARTITIONED_BY
from catalog.iceberg.truncation import wraps
from catalog.partitioning import (
    INGEST_IDS,
    TRANSFORMS,
    PartitionColumn,
    Partitioning,
    PartitionTerm,
    PartitionTuple,
    function_of,
    is_time,
)
from schema_mapping import names
from schema_mapping.columns.types import UNSIGNED_LONG

if TYPE_CHECKING:
    from schema_mapping.row import PartitionSource

_LONG_BYTES: Final = 8


def partitioning_for(
    terms: Sequence[PartitionTerm],
    schema: Schema,
    source: PartitionSource,
    *,
    earlier: Iterable[Schema] = (),
    current: Partitioning | None = None,
) -> Partitioning:
    """Raises UnfitPartitioning. A column may have a name of `earlier` schemas (newest first).

    Terms of `current` may stay.
    """
    kept = {(column.source_id, column.transform) for column in current.columns} if current else set()
    columns: list[PartitionColumn] = []
    before = tuple(earlier)
    for term in terms:
        field = _source(term, schema, source, before)
        _check(term, field.field_type)
        if (field.field_id, term.transform) not in kept:
            _check_new(term, field)
        column = PartitionColumn(_name(term, field.field_id, schema, columns), term.transform, field.field_id)
        for existing in columns:
            if existing.source_id == column.source_id and (
                existing.transform == column.transform or (is_time(existing.transform) and is_time(column.transform))
            ):
                raise UnfitPartitioning(
                    "The table would be partitioned twice by the same column: leave one of them out",
                    partition_by=str(term),
                    also=f"{existing.transform} of the same column",
                )
        columns.append(column)
    return Partitioning(tuple(columns))


def partitioning_of(spec: PartitionSpec) -> Partitioning:
    return Partitioning(
        tuple(PartitionColumn(field.name, str(field.transform), field.source_id) for field in spec.fields)
    )


def can_compute(partitioning: Partitioning, schema: Schema) -> bool:
    return bool(partitioning.columns) and all(
        function_of(column.transform)[0] in TRANSFORMS
        and column.source_id in schema.field_ids
        and not isinstance(schema.find_type(column.source_id), (FloatType, DoubleType))
        for column in partitioning.columns
    )


def same_partitions(one: Partitioning, other: Partitioning) -> bool:
    """Whichever copy of the ingest timestamp is the source."""
    return _meaning(one) == _meaning(other)


def _meaning(one: Partitioning) -> list[tuple[str, int]]:
    return [
        (column.transform, min(INGEST_IDS) if column.source_id in INGEST_IDS else column.source_id)
        for column in one.columns
    ]


def own_partitioning(metadata: TableMetadata, table: str) -> Partitioning:
    """By the table's property, else by time alone. Raises PartitioningChanged if it isn't current."""
    current = partitioning_of(metadata.spec())
    expected = _expected(metadata, current)
    if expected == current:
        return current
    remedy = [] if expected is None else _alter_statements(metadata.schema(), current, expected, table)
    how = f", in Spark SQL for example: {'; '.join(remedy)}" if remedy else " with the engine that changed it"
    raise PartitioningChanged(
        "the table's partitioning was changed by others: files would go to it under values that aren't theirs, and "
        f"engines would miss rows. Change it back{how}",
        table=table,
        found=current.by or "not partitioned",
        expected=metadata.properties.get(PARTITIONED_BY) or (expected.by if expected else "by time"),
    )


def _expected(metadata: TableMetadata, current: Partitioning) -> Partitioning | None:
    """None if the table lost the spec. Any time of the ingest timestamp is followed, under the archiver's name."""
    if ours := metadata.properties.get(PARTITIONED_BY):
        spec = spec_by(metadata, ours)
        return None if spec is None else partitioning_of(spec)
    newest = sorted(metadata.partition_specs, key=lambda spec: spec.spec_id, reverse=True)
    earlier = (before.columns[0] for before in map(partitioning_of, newest) if before.is_time_alone)
    first = PartitionColumn("ingest_day", "day", max(INGEST_IDS & metadata.schema().field_ids, default=max(INGEST_IDS)))
    columns = (*current.columns, *earlier, first)
    return Partitioning(
        (next(column for column in columns if column.is_ingest_time and column.name == f"ingest_{column.transform}"),)
    )


def _alter_statements(schema: Schema, current: Partitioning, expected: Partitioning, table: str) -> list[str]:
    """Empty if a column is gone. All fields from the first different one on are dropped and added."""
    same = 0
    for old, new in zip(current.columns, expected.columns, strict=False):
        if old != new:
            break
        same += 1
    changes = [f"DROP PARTITION FIELD {_quoted(column.name)}" for column in current.columns[same:]]
    for column in expected.columns[same:]:
        source = schema.find_column_name(column.source_id)
        if source is None:
            return []
        changes.append(f"ADD PARTITION FIELD {_sql_term(column.transform, source)} AS {_quoted(column.name)}")
    return [f"ALTER TABLE {table} {change}" for change in changes]


def _sql_term(transform: str, column: str) -> str:
    """In Spark SQL `bucket[16]` is `bucket(16, column)`, `day` is `days(column)`."""
    path = ".".join(part if part.isidentifier() else _quoted(part) for part in column.split("."))
    name, number = function_of(transform)
    if name == "identity":
        return path
    return f"{name}({number}, {path})" if number else f"{name}s({path})"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def spec_by(metadata: TableMetadata, by: str) -> PartitionSpec | None:
    fitting = [spec for spec in metadata.partition_specs if partitioning_of(spec).by == by]
    return next(
        (spec for spec in fitting if spec.spec_id == metadata.default_spec_id), fitting[-1] if fitting else None
    )


def iceberg_spec(
    partitioning: Partitioning, *, known: Iterable[PartitionField] = (), last_id: int = 0
) -> PartitionSpec:
    """`known` fields of earlier specs keep id and name."""
    existing = {(entry.source_id, str(entry.transform)): entry for entry in known}
    taken = {entry.name.lower() for entry in existing.values()}
    free = max(last_id, PARTITION_FIELD_ID_START - 1)
    fields: list[PartitionField] = []
    for column in partitioning.columns:
        field = existing.get((column.source_id, column.transform))
        if field is None:
            free += 1
            field = PartitionField(
                source_id=column.source_id,
                field_id=free,
                transform=parse_transform(column.transform),
                name=_unused(column.name, taken),
            )
        fields.append(field)
    return PartitionSpec(*fields, spec_id=0)


def record_of(partition: PartitionTuple, spec: PartitionSpec, schema: Schema) -> Record:
    """Before a commit that widens a source to long, values have 8 bytes already.

    A time needs no source in the schema.
    """
    if partition.is_one_time:
        return Record(partition.time_value)
    kinds = (
        cast("PrimitiveType", field.transform.result_type(schema.find_type(field.source_id))) for field in spec.fields
    )
    values = (
        None if value is None else from_bytes(_widened(kind, value), value)
        for kind, value in zip(kinds, partition.values or (), strict=True)
    )
    return Record(*values)


def tuple_of(values: Sequence[Any], spec: PartitionSpec, schema: Schema) -> PartitionTuple | None:
    if any(field.source_id not in schema.field_ids for field in spec.fields):
        return None
    kinds = (
        cast("PrimitiveType", field.transform.result_type(schema.find_type(field.source_id))) for field in spec.fields
    )
    encoded = (None if value is None else to_bytes(kind, value) for kind, value in zip(kinds, values, strict=True))
    return PartitionTuple(partitioning_of(spec).by, tuple(encoded))


def _widened(kind: PrimitiveType, value: bytes) -> PrimitiveType:
    return LongType() if isinstance(kind, IntegerType) and len(value) == _LONG_BYTES else kind


def source_ids(metadata: TableMetadata) -> frozenset[int]:
    sources = {field.source_id for spec in metadata.partition_specs for field in spec.fields}
    ids: set[int] = set()
    for field_id in sources:
        for schema in reversed(metadata.schemas):
            if path := _ids_to(field_id, schema.fields):
                ids.update(path)
                break
    return frozenset(ids)


def _ids_to(field_id: int, fields: Iterable[NestedField]) -> tuple[int, ...]:
    for field in fields:
        if field.field_id == field_id:
            return (field_id,)
        if isinstance(field.field_type, StructType) and (below := _ids_to(field_id, field.field_type.fields)):
            return (field.field_id, *below)
    return ()


def _source(term: PartitionTerm, schema: Schema, source: PartitionSource, earlier: Sequence[Schema]) -> NestedField:
    path = term.source
    if path is None:
        path = names.INGEST_TIMESTAMP if source == "flat" else f"{names.KAFKA}.{names.INGEST_TIMESTAMP}"
    field = _field_at(term, path, schema)
    for older in earlier:
        if field is not None:
            break
        before = _field_at(term, path, older)
        if before is not None and before.field_id in schema.field_ids:
            field = schema.find_field(before.field_id)
    if field is None:
        raise UnfitPartitioning(
            "The table can't be partitioned by a column that it doesn't have: name one of key, val or kafka with its "
            "whole path, as `archiver schema show` lists them",
            partition_by=str(term),
            column=path,
        )
    return field


def _field_at(term: PartitionTerm, path: str, schema: Schema) -> NestedField | None:
    fields: tuple[NestedField, ...] = schema.fields
    *above, last = path.split(".")
    for step in above:
        child = next((field for field in fields if field.name == step), None)
        if child is None:
            return None
        if not isinstance(child.field_type, StructType):
            raise UnfitPartitioning(
                "Iceberg partitions by single values: a column inside a list or map, or below a value, can't be one",
                partition_by=str(term),
                column=step,
                type=str(child.field_type),
            )
        fields = child.field_type.fields
    return next((field for field in fields if field.name == last), None)


def _check(term: PartitionTerm, kind: IcebergType) -> None:
    if not isinstance(kind, PrimitiveType):
        raise UnfitPartitioning(
            "Iceberg partitions by single values: name a field inside this column",
            partition_by=str(term),
            type=str(kind),
        )
    if isinstance(kind, (FloatType, DoubleType)):
        raise UnfitPartitioning(
            "A table can't be partitioned by a floating-point column: engines don't agree which partition NaN and -0.0 "
            "belong to, and Iceberg has no bucket or truncate of them",
            partition_by=str(term),
            type=str(kind),
        )
    if isinstance(kind, DecimalType) and term.transform.startswith("truncate") and not _is_unsigned(kind):
        raise UnfitPartitioning(
            "A table can't be partitioned by truncated decimals that may be negative: they are truncated downwards, so "
            "the lowest ones would get more digits than the column has. Use the column itself, or bucket",
            partition_by=str(term),
            type=str(kind),
        )
    transform: Any = parse_transform(term.transform)
    if not transform.can_transform(kind):
        raise UnfitPartitioning(
            "Iceberg has no such partition of a column with this type: times need a time or date, truncate a number, "
            "text or bytes",
            partition_by=str(term),
            type=str(kind),
        )


def _check_new(term: PartitionTerm, field: NestedField) -> None:
    if not wraps(term.transform, field.field_id, field.field_type):
        return
    width = int(term.transform.removeprefix("truncate[").removesuffix("]"))
    raise UnfitPartitioning(
        f"A whole number can't be truncated to a width of {width}: engines would leave out rows with the lowest values "
        "of its type, as their step begins below these. Take a width that is a power of two, such as "
        f"{1 << width.bit_length() - 1}, or the column itself, or bucket",
        partition_by=str(term),
        type=str(field.field_type),
    )


def _is_unsigned(kind: DecimalType) -> bool:
    """`uint64 = "decimal"` always has room for truncation."""
    return (kind.precision, kind.scale) == (UNSIGNED_LONG.precision, UNSIGNED_LONG.scale)


def _name(term: PartitionTerm, source_id: int, schema: Schema, others: Sequence[PartitionColumn]) -> str:
    """A unique name without dots, which catalogs refuse in folders."""
    transform = TRANSFORMS[function_of(term.transform)[0]]
    if term.source is None or (source_id in INGEST_IDS and transform.unit):
        path = "ingest"  # the name of a table's only field, also where the column is written out
    else:
        path = "_".join(step.strip("_") or step for step in term.source.split("."))
    base = f"{path}{transform.suffix}"
    return _unused(base, {field.name.lower() for field in schema.fields} | {column.name.lower() for column in others})


def _unused(name: str, taken: Collection[str]) -> str:
    candidate, number = name, 2
    while candidate.lower() in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate
