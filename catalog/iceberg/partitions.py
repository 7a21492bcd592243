"""Find a file's partition spec.

Staged files keep transform and source with the value. A mismatch is an error, never a guess.
"""

from __future__ import annotations

import struct

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import TimestamptzType

from catalog.errors import PartitioningChanged
from catalog.iceberg.partition_spec import partitioning_of
from catalog.model import DataFileInfo
from catalog.partitioning import PartitionTuple
from schema_mapping.columns.fixed_ids import INGEST_TIMESTAMP_ID


def spec_of(metadata: TableMetadata, file: DataFileInfo, table: str, *, is_staged: bool = True) -> PartitionSpec:
    """Raises PartitioningChanged if no spec fits, or different ones do.

    Only a staged file's bounds must be of its partition: other engines may have put rows of several partitions into the
    file that another one replaces.
    """
    specs = [spec for spec in metadata.partition_specs if _fits(spec, file, is_staged=is_staged)]
    if len({tuple(str(field.transform) for field in spec.fields) for spec in specs}) == 1:
        return next((spec for spec in specs if spec.spec_id == metadata.default_spec_id), specs[0])
    raise PartitioningChanged(
        "the table has no partitioning any more that a staged file was written for; the file stays staged. Change it "
        "back to what the file says, then run again",
        table=table,
        file=file.path,
        partitioned_by=file.partition.by or "not kept",
        partition_value=file.partition.time_value,
        found=[partitioning_of(spec).by for spec in metadata.partition_specs],
    )


def placed(metadata: TableMetadata, file: DataFileInfo) -> PartitionTuple | None:
    """By the file's bounds. None if no partition of time fits."""
    current = metadata.default_spec_id
    for spec in sorted(metadata.partition_specs, key=lambda spec: (spec.spec_id != current, spec.spec_id)):
        if partitioning_of(spec).is_time_alone and len(values := _values(spec, file)) == 1:
            return PartitionTuple.of_time(values.pop(), partitioning_of(spec).by)
    return None


def _fits(spec: PartitionSpec, file: DataFileInfo, *, is_staged: bool) -> bool:
    partitioning, partition = partitioning_of(spec), file.partition
    if partition.values is None or partition.by not in (None, partitioning.by):
        return False
    if not partitioning.is_time_alone or (partition.by is not None and not is_staged):
        return partition.by is not None
    values = _values(spec, file)
    return not values or values == {partition.time_value}


def _values(spec: PartitionSpec, file: DataFileInfo) -> set[int]:
    (field,) = spec.fields
    source = INGEST_TIMESTAMP_ID if file.partition.by is None else field.source_id
    bounds = (file.lower_bounds.get(source), file.upper_bounds.get(source))
    value = field.transform.transform(TimestamptzType())
    return {int(value(*struct.unpack("<q", bound)) or 0) for bound in bounds if bound is not None}
