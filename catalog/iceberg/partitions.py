"""Find the partition spec that a file was written for.

Staged files keep transform and source with the value. A mismatch is an error, never a guess.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import DayTransform, HourTransform, MonthTransform, Transform, YearTransform
from pyiceberg.types import TimestamptzType

from catalog.errors import PartitioningChanged
from catalog.iceberg.partition_spec import partitioning_of, spec_by
from catalog.model import DataFileInfo
from schema_mapping import names
from schema_mapping.columns.fixed_ids import FLAT_INGEST_TIMESTAMP_ID, INGEST_TIMESTAMP_ID

PartitionBy = Literal["hour", "day", "month", "year"]

TRANSFORMS: Final[Mapping[PartitionBy, Transform[Any, Any]]] = {
    "hour": HourTransform(),
    "day": DayTransform(),
    "month": MonthTransform(),
    "year": YearTransform(),
}

_COLUMNS: Final[Mapping[int, str]] = {
    INGEST_TIMESTAMP_ID: f"{names.KAFKA}.{names.INGEST_TIMESTAMP}",
    FLAT_INGEST_TIMESTAMP_ID: names.INGEST_TIMESTAMP,
}


def field_name(unit: PartitionBy) -> str:
    return f"ingest_{unit}"


def unit_of(field: PartitionField) -> PartitionBy | None:
    """The unit of an ingest timestamp field, None for other sources."""
    if field.source_id not in _COLUMNS:
        return None
    return next((unit for unit, transform in TRANSFORMS.items() if transform == field.transform), None)


def partitioned_by(field: PartitionField) -> str:
    """Transform and source as a staged file keeps them: `day(13)`."""
    return f"{field.transform}({field.source_id})"


def current_field(metadata: TableMetadata, table: str) -> PartitionField:
    """The only current field. Raises PartitioningChanged unless the archiver creates such fields."""
    fields = metadata.spec().fields
    ours = next((each for each in fields if _is_ours(each)), None)
    if ours is not None and len(fields) == 1:
        return ours
    wanted = ours or next((spec.fields[0] for spec in reversed(_ours(metadata)) if spec.fields[0] not in fields), None)
    raise PartitioningChanged(
        "the table's partitioning was changed: files would go to it under values that aren't theirs, and engines would "
        f"miss rows. Change it back, in Spark SQL for example: {'; '.join(_remedy(table, fields, wanted))}",
        table=table,
        found=[str(field) for field in fields],
        expected=str(wanted) if wanted else "hour, day, month or year of the ingest timestamp",
    )


def spec_of(metadata: TableMetadata, file: DataFileInfo, table: str) -> PartitionSpec:
    """The spec of the file's value.

    Raises PartitioningChanged if none or several different ones fit.
    """
    if file.partition is not None:
        found = spec_by(metadata, file.partition.by)
        if found is not None:
            return found
        raise _no_spec(metadata, file, table)
    specs = [spec for spec in _ours(metadata) if _fits(spec.fields[0], file)]
    if len({partitioned_by(spec.fields[0]).split("(")[0] for spec in specs}) == 1:
        return next((spec for spec in specs if spec.spec_id == metadata.default_spec_id), specs[0])
    raise _no_spec(metadata, file, table)


def _no_spec(metadata: TableMetadata, file: DataFileInfo, table: str) -> PartitioningChanged:
    return PartitioningChanged(
        "the table has no partitioning any more that a staged file was written for; the file stays staged. Change it "
        "back to what the file says, then run again",
        table=table,
        file=file.path,
        partitioned_by=file.partitioned_by or "not kept",
        partition_value=file.partition_value,
        found=[partitioning_of(spec).by for spec in metadata.partition_specs],
    )


def placed(metadata: TableMetadata, file: DataFileInfo) -> tuple[str, int] | None:
    """The file's `partitioned_by` and value by its bounds, None if no partition fits."""
    current = metadata.default_spec_id
    for spec in sorted(_ours(metadata), key=lambda spec: spec.spec_id != current):
        values = _values(spec.fields[0], file)
        if len(values) == 1:
            return partitioned_by(spec.fields[0]), values.pop()
    return None


def _ours(metadata: TableMetadata) -> list[PartitionSpec]:
    specs = sorted(metadata.partition_specs, key=lambda spec: spec.spec_id)
    return [spec for spec in specs if len(spec.fields) == 1 and unit_of(spec.fields[0]) is not None]


def _fits(field: PartitionField, file: DataFileInfo) -> bool:
    if file.partitioned_by not in (None, partitioned_by(field)):
        return False
    values = _values(field, file)
    return not values or values == {file.partition_value}


def _values(field: PartitionField, file: DataFileInfo) -> set[int]:
    bounds = (file.lower_bounds.get(INGEST_TIMESTAMP_ID), file.upper_bounds.get(INGEST_TIMESTAMP_ID))
    value = field.transform.transform(TimestamptzType())
    return {int(value(*struct.unpack("<q", bound)) or 0) for bound in bounds if bound is not None}


def _is_ours(field: PartitionField) -> bool:
    unit = unit_of(field)
    return unit is not None and field.name == field_name(unit)


def _remedy(table: str, found: Sequence[PartitionField], wanted: PartitionField | None) -> list[str]:
    others = [each for each in found if each != wanted]
    changes: list[str] = []
    if len(others) == len(found):
        unit = (unit_of(wanted) if wanted else None) or "day"
        column = _COLUMNS[wanted.source_id if wanted else INGEST_TIMESTAMP_ID]
        change = f"REPLACE PARTITION FIELD {_quoted(others.pop(0))} WITH" if others else "ADD PARTITION FIELD"
        changes.append(f"{change} {unit}s({column}) AS {field_name(unit)}")
    changes += [f"DROP PARTITION FIELD {_quoted(each)}" for each in others]
    return [f"ALTER TABLE {table} {each}" for each in changes]


def _quoted(field: PartitionField) -> str:
    return "`" + field.name.replace("`", "``") + "`"
