"""The schemas that a table has had, oldest first.

The table's metadata keeps every schema under its number. Some catalogs keep one more from the table's creation, with
field ids of its own; it is left out, as its ids mean other columns.
"""

from __future__ import annotations

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata

from schema_mapping import names
from schema_mapping.columns.fixed_ids import OFFSET_ID, PARTITION_ID

_FIXED = {PARTITION_ID: f"{names.KAFKA}.{names.PARTITION}", OFFSET_ID: f"{names.KAFKA}.{names.OFFSET}"}


def schema_history(metadata: TableMetadata) -> tuple[Schema, ...]:
    """Every schema of an archive's table, in the order in which they were added. The current one is among them."""
    ordered = sorted(metadata.schemas, key=lambda schema: schema.schema_id)
    return tuple(schema for schema in ordered if _has_our_ids(schema))


def _has_our_ids(schema: Schema) -> bool:
    return all(schema.find_column_name(field_id) == name for field_id, name in _FIXED.items())
