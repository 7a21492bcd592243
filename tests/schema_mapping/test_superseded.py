"""Superseded columns, and whether their values can be cast."""

from __future__ import annotations

import pytest

from schema_mapping import assign
from schema_mapping.columns.ledger import LedgerState
from schema_mapping.superseded import superseded_columns
from tests.support.schemas.proto_text import fields


def castable(*bodies: str) -> list[bool]:
    state = LedgerState()
    for body in bodies:
        state = assign(state, value=fields(body)).state
    pairs = superseded_columns(state)
    names = {entry.field_id: entry.name for entry in state.entries}
    assert all("_deleted_" in names[old] and "_deleted_" not in names[pair.by] for old, pair in pairs.items())
    return [pairs[old].is_castable for old in sorted(pairs)]


@pytest.mark.parametrize(
    ("before", "after", "fits"),
    [
        ("int32", "string", True),
        ("sint64", "string", True),
        ("sfixed32", "double", True),
        ("uint32", "string", False),
        ("uint64", "string", False),
        ("int64", "double", False),
        ("uint32", "int64", False),
        ("bool", "string", False),
        ("double", "string", False),
        ("string", "int64", False),
    ],
)
def test_only_signed_numbers_are_castable(before: str, after: str, fits: bool) -> None:
    assert castable(f"{before} x = 1;", f"{after} x = 1;") == [fits]


def test_every_version_of_the_older_column_counts() -> None:
    assert castable("int32 x = 1;", "uint64 x = 1;", "string x = 1;") == [False]
    assert castable("int32 x = 1;", "int64 x = 1;", "string x = 1;") == [True]


def test_other_columns_are_not_superseded() -> None:
    assert castable("int32 x = 1;", "int64 x = 1;") == []
    assert castable("int32 x = 1;", "string y = 1; int32 z = 2;") == [True]
    assert castable("int32 x = 1; int32 y = 2;", "string x = 3; int32 y = 2;") == []
