"""The schemas of a table, oldest first.

Some catalogs keep one more from the creation, with other field ids; it is left out.
"""

from __future__ import annotations

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata

from schema_mapping import names
from schema_mapping.columns.fixed_ids import OFFSET_ID, PARTITION_ID

_FIXED = {PARTITION_ID: f"{names.KAFKA}.{names.PARTITION}", OFFSET_ID: f"{names.KAFKA}.{names.OFFSET}"}


def schema_history(metadata: TableMetadata) -> tuple[Schema, ...]:
    ordered = sorted(metadata.schemas, key=lambda schema: schema.schema_id)
    return tuple(schema for schema in ordered if _has_our_ids(schema))


def _has_our_ids(schema: Schema) -> bool:
    return all(schema.find_column_name(field_id) == name for field_id, name in _FIXED.items())
