from __future__ import annotations

from dataclasses import replace

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from catalog.errors import SchemaConflict
from catalog.iceberg.schema_change import SchemaChange, check_new_ids, merge
from schema_mapping.field_ids import LedgerState, assign
from tests.support.catalog.memory import ID, NOTE, change, schema


def deep(*fields: NestedField) -> NestedField:
    values = MapType(111, StringType(), 112, StructType(*fields))
    return NestedField(110, "deep", ListType(113, values))


def test_new_columns_go_in_and_order_is_ours():
    merged = merge(change(NOTE, ID), schema(ID))
    assert merged.find_field("val").field_type == StructType(NOTE, ID)


def test_renaming_goes_by_id():
    renamed = NestedField(101, "number", LongType())
    assert merge(change(renamed), schema(ID)).find_field(101).name == "number"


def test_columns_of_others_stay_at_every_depth():
    theirs = NestedField(900, "theirs", StringType())
    inner = NestedField(901, "inner", StringType())
    current = Schema(*schema(ID, deep(NOTE, inner)).fields, theirs)
    merged = merge(change(ID, deep(NOTE)), current)
    assert merged.find_field(900) == theirs
    assert merged.find_column_name(901) == "val.deep.element.value.inner"


def test_a_name_taken_by_others_gets_our_id():
    theirs = NestedField(900, "NOTE", StringType())
    merged = merge(change(ID, NOTE), schema(ID, theirs))
    assert (merged.find_field(102).name, merged.find_field(900).name) == ("note_102", "NOTE")
    again = merge(change(ID, NOTE), merged)
    assert again == merged


def test_a_name_given_way_never_clashes_itself():
    theirs = NestedField(900, "note", StringType())
    awkward = NestedField(103, "note_102", StringType())
    names = {field.name for field in merge(change(NOTE, awkward), schema(theirs)).find_type("val").fields}  # type: ignore[union-attr]
    assert names == {"note", "note_102", "note_102_102"}


def test_a_column_the_ledger_dropped_goes():
    assert merge(change(ID, dropped=frozenset({102})), schema(ID, NOTE)).column_names.count("val.note") == 0
    assert merge(change(ID), schema(ID, NOTE)).column_names.count("val.note") == 1


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        (LongType(), IntegerType(), LongType()),
        (IntegerType(), LongType(), LongType()),
        (DoubleType(), FloatType(), DoubleType()),
        (FloatType(), DoubleType(), DoubleType()),
        (DecimalType(20, 0), DecimalType(38, 0), DecimalType(38, 0)),
    ],
)
def test_the_wider_type_stands(ours: IcebergType, theirs: IcebergType, merged: IcebergType):
    result = merge(change(NestedField(101, "id", ours)), schema(NestedField(101, "id", theirs)))
    assert result.find_type("val.id") == merged


def test_a_type_that_does_not_fit_is_named():
    with pytest.raises(SchemaConflict, match=r"column='id'.*table_type='string'.*our_type='long'"):
        merge(change(ID), schema(NestedField(101, "id", StringType())))


def test_ids_that_others_took_are_named():
    columns = change(ID, NOTE)
    check_new_ids(columns, last_field_id=101, last_column_id=101)
    check_new_ids(columns, last_field_id=102, last_column_id=900)
    with pytest.raises(SchemaConflict, match=r"field_ids=\[102\]"):
        check_new_ids(columns, last_field_id=101, last_column_id=102)


def test_an_assignment_brings_its_newest_columns():
    assignment = assign(LedgerState())
    made = SchemaChange.of(assignment)
    assert made.schema == assignment.iceberg_schema
    assert made.version == assignment.version == 1
    assert made.owned_ids == {entry.field_id for entry in assignment.state.entries}
    assert min(made.owned_ids) == 100


def test_same_version_adds_written_columns_and_drops_none():
    written = replace(change(ID, NOTE, version=3), written_ids=frozenset({101}))
    assert written.for_table(schema(ID), 3) is None
    assert written.for_table(schema(NOTE), 4) is None
    assert written.for_table(schema(ID), 2) is written
    first, second = (
        replace(change(field, version=3, dropped=frozenset({101, 102})), written_ids=frozenset({field.field_id}))
        for field in (ID, NOTE)
    )
    added = first.for_table(schema(NOTE), 3)
    assert added is not None
    both = merge(added, schema(NOTE))
    assert both.find_type("val") == StructType(ID, NOTE)
    assert (first.for_table(both, 3), second.for_table(both, 3)) == (None, None)
