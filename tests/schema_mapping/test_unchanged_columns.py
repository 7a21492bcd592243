"""A known schema shares its table's earlier columns."""

from __future__ import annotations

from dataclasses import replace

from schema_mapping.columns.ledger import LedgerState
from schema_mapping.columns.options import MappingOptions
from schema_mapping.field_ids import Assignment, assign, ledger_schema
from tests.support.schemas.proto_text import fields

STEPS = ("int32 a = 1; string b = 2;", "int64 a = 1; string c = 3;", "map<string, int32> by = 4;")


def test_tables_with_the_same_columns_share_them() -> None:
    first = [assign(LedgerState(), value=fields(STEPS[0])) for _ in range(2)]
    again = [assign(item.state, value=fields(STEPS[0])) for item in first]
    assert again[0].iceberg_schema is again[1].iceberg_schema
    assert again[0].iceberg_schema == first[0].iceberg_schema


def test_an_older_schema_has_all_columns_that_it_writes() -> None:
    for options in (MappingOptions(), replace(MappingOptions(), keep_removed=False)):
        made: list[Assignment] = []
        for body in STEPS:
            state = made[-1].state if made else LedgerState()
            made.append(assign(state, value=fields(body), options=options))
        newest = made[-1]
        for old, body in zip(made, STEPS, strict=True):
            result = assign(newest.state, value=fields(body), options=options)
            expected = ledger_schema(newest.state.entries, newest.row, written=old.row.column_ids)
            assert (result.iceberg_schema, result.version) == (expected, old.version)


def test_columns_that_differ_in_a_comment_are_others() -> None:
    state = assign(LedgerState(), value=fields(STEPS[0])).state
    events = replace(state, entries=tuple(replace(entry, doc=f"of {entry.name}") for entry in state.entries))
    schemas = [assign(value, value=fields(STEPS[0])).iceberg_schema for value in (state, events)]
    assert [schema.find_field("val.a").doc for schema in schemas] == [None, "of a"]
