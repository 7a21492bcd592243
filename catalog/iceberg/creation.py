"""The updates that create a table, with the ledger's own field ids (docs/concepts.md).

pyiceberg's `create_table` assigns its own ids. Instead, one commit that asserts that the table does not exist sets
everything. So nobody ever sees a table that is half made.
"""

from __future__ import annotations

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


def first_updates(
    staged: TableMetadata,
    schema: Schema,
    *,
    partitioning: Partitioning,
    partition_source: PartitionSource,
    properties: dict[str, str],
) -> tuple[TableUpdate, ...]:
    """The updates that create the table. Each default is set to what was added just before it.

    `staged` is the catalog's proposal. Its UUID and location are used. A flat table knows our sort order, which its
    files name, and asks no other writer to sort by it: Trino can't sort by a column inside a struct, and fails.
    """
    ours = AddSortOrderUpdate.model_validate({"sort-order": sort_order(schema)})
    unsorted = AddSortOrderUpdate.model_validate({"sort-order": UNSORTED_SORT_ORDER})
    is_flat = partition_source == "flat"
    return (
        AssignUUIDUpdate(uuid=staged.table_uuid),
        UpgradeFormatVersionUpdate.model_validate({"format-version": TABLE_FORMAT}),
        AddSchemaUpdate(schema=schema),
        SetCurrentSchemaUpdate(),
        AddPartitionSpecUpdate(spec=iceberg_spec(partitioning)),
        SetDefaultSpecUpdate(),
        *((unsorted, SetDefaultSortOrderUpdate(), ours) if is_flat else (ours, SetDefaultSortOrderUpdate())),
        SetLocationUpdate(location=staged.location),
        SetPropertiesUpdate(updates=properties),
    )


def sort_order(schema: Schema) -> SortOrder:
    """The sort order of the rows in every file: by partition, then by offset."""
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
