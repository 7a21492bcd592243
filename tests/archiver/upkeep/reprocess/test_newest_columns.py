"""Columns from the ledger and waiting files."""

from __future__ import annotations

from archiver.upkeep.reconcile import newest_columns
from schema_mapping import LedgerState, MappingOptions, assign
from tests.support.schemas.proto_text import fields


def test_what_waits_is_written_to_columns_that_the_table_has() -> None:
    dropping = MappingOptions(keep_removed=False)
    first = assign(LedgerState(), value=fields("int32 a = 1; int32 b = 2;"), options=dropping)
    second = assign(first.state, value=fields("int32 a = 1;"), options=dropping)
    alone = newest_columns(second.state)
    assert alone.schema == second.iceberg_schema
    assert "val.b" not in alone.schema.column_names
    waiting = newest_columns(second.state, {first.version})
    assert "val.b" in waiting.schema.column_names
    assert waiting.written_ids == first.row.column_ids
    change = waiting.for_table(second.iceberg_schema, second.version)
    assert change is not None
    assert "val.b" in change.schema.column_names
