"""The updates for another partition spec, of metadata alone: files keep their spec."""

from __future__ import annotations

from typing import Final

from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertLastAssignedPartitionId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    SetDefaultSpecUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
)

from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.partition_spec import iceberg_spec, spec_by
from catalog.iceberg.properties import PARTITIONED_BY, REPARTITIONED
from catalog.partitioning import Partitioning

NEWEST = -1
"""Stands for the spec that was added just before."""

KEPT_CHANGES: Final = 16
"""How many changes of the partitioning a table remembers."""


def is_partitioned(table: ArchiveTable, wanted: Partitioning) -> bool:
    metadata = table.iceberg.metadata
    spec = spec_by(metadata, wanted.by)
    recorded = metadata.properties.get(PARTITIONED_BY)
    return (
        spec is not None
        and spec.spec_id == metadata.default_spec_id
        and recorded == (None if wanted.is_time_alone else wanted.by)
    )


def changes_of(table: ArchiveTable) -> tuple[str, ...]:
    """Newest first."""
    return tuple(table.properties.get(REPARTITIONED, "").split())


def repartition_updates(
    table: ArchiveTable, wanted: Partitioning, change_id: str
) -> tuple[tuple[TableRequirement, ...], tuple[TableUpdate, ...]]:
    """The table stores the change's id, which proves it if the answer is lost."""
    metadata = table.iceberg.metadata
    requirements = (
        AssertTableUUID(uuid=table.uuid),
        AssertCurrentSchemaId.model_validate({"current-schema-id": table.schema.schema_id}),
        AssertDefaultSpecId.model_validate({"default-spec-id": metadata.default_spec_id}),
        AssertLastAssignedPartitionId.model_validate({"last-assigned-partition-id": metadata.last_partition_id}),
    )
    existing = spec_by(metadata, wanted.by)
    updates: list[TableUpdate] = []
    if existing is None:
        fields = [field for spec in metadata.partition_specs for field in spec.fields]
        spec = iceberg_spec(wanted, known=fields, last_id=metadata.last_partition_id or 0)
        number = 1 + max(spec.spec_id for spec in metadata.partition_specs)
        updates.append(AddPartitionSpecUpdate(spec=spec.model_copy(update={"spec_id": number})))
    chosen = NEWEST if existing is None else existing.spec_id
    updates.append(SetDefaultSpecUpdate.model_validate({"spec-id": chosen}))
    properties = {REPARTITIONED: " ".join((change_id, *changes_of(table))[:KEPT_CHANGES])}
    if not wanted.is_time_alone:
        properties[PARTITIONED_BY] = wanted.by
    updates.append(SetPropertiesUpdate(updates=properties))
    if wanted.is_time_alone and PARTITIONED_BY in metadata.properties:
        updates.append(RemovePropertiesUpdate(removals=[PARTITIONED_BY]))
    return requirements, tuple(updates)
