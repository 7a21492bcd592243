"""The updates that create a table with the ledger's field ids, in one commit (docs/concepts.md).

pyiceberg's `create_table` assigns ids itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSortOrderUpdate,
    AssignUUIDUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    TableUpdate,
    UpgradeFormatVersionUpdate,
)
from pyiceberg.transforms import IdentityTransform

from catalog.iceberg.partition_spec import iceberg_spec
from catalog.partitioning import Partitioning
from schema_mapping import names

if TYPE_CHECKING:
    from schema_mapping.row import PartitionSource


TABLE_FORMAT: Final = 2
"""Iceberg's format version: pyiceberg writes no version 3 yet."""


UPGRADE: Final = UpgradeFormatVersionUpdate.model_validate({"format-version": TABLE_FORMAT})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """A flat table's sort order isn't its default: Trino fails to sort by nested columns."""

    schema: Schema
    partitioning: Partitioning
    partition_source: PartitionSource
    properties: dict[str, str]

    def creating(self, staged: TableMetadata, *, is_sorted: bool = True) -> tuple[TableUpdate, ...]:
        """UUID and location come from the catalog's proposal `staged`."""
        unsorted = AddSortOrderUpdate.model_validate({"sort-order": UNSORTED_SORT_ORDER})
        return (
            AssignUUIDUpdate(uuid=staged.table_uuid),
            UPGRADE,
            AddSchemaUpdate(schema=self.schema),
            SetCurrentSchemaUpdate(),
            AddPartitionSpecUpdate(spec=iceberg_spec(self.partitioning)),
            SetDefaultSpecUpdate(),
            *((unsorted, SetDefaultSortOrderUpdate()) if self._is_flat or not is_sorted else ()),
            *self._order(is_sorted=is_sorted),
            SetLocationUpdate(location=staged.location),
            SetPropertiesUpdate(updates=self.properties),
        )

    def completing(self, plain: TableMetadata, *, is_sorted: bool = True) -> tuple[TableUpdate, ...]:
        spec = iceberg_spec(self.partitioning, last_id=plain.last_partition_id or 0)
        number = 1 + max(spec.spec_id for spec in plain.partition_specs)
        return (
            UPGRADE,
            *schema_updates(plain, self.schema),
            AddPartitionSpecUpdate(spec=spec.model_copy(update={"spec_id": number})),
            SetDefaultSpecUpdate(),
            *self._order(is_sorted=is_sorted),
            SetPropertiesUpdate(updates=self.properties),
        )

    @property
    def _is_flat(self) -> bool:
        return self.partition_source == "flat"

    def _order(self, *, is_sorted: bool) -> tuple[TableUpdate, ...]:
        if not is_sorted:
            return ()
        ours = AddSortOrderUpdate.model_validate({"sort-order": sort_order(self.schema)})
        return (ours,) if self._is_flat else (ours, SetDefaultSortOrderUpdate())


def schema_updates(plain: TableMetadata, schema: Schema) -> tuple[TableUpdate, ...]:
    """An existing schema isn't added: some catalogs add nothing then."""
    old = plain.schema()
    if old == schema:
        return ()
    fresh = schema.model_copy(update={"schema_id": 1 + max(existing.schema_id for existing in plain.schemas)})
    return (AddSchemaUpdate(schema=fresh), SetCurrentSchemaUpdate.model_validate({"schema-id": fresh.schema_id}))


def sort_order(schema: Schema) -> SortOrder:
    columns = (f"{names.KAFKA}.{names.PARTITION}", f"{names.KAFKA}.{names.OFFSET}")
    fields = (
        SortField(
            source_id=schema.find_field(column).field_id,
            transform=IdentityTransform(),
            direction=SortDirection.ASC,
            null_order=NullOrder.NULLS_FIRST,
        )
        for column in columns
    )
    return SortOrder(*fields, order_id=1)
