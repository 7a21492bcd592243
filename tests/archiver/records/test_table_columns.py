"""Columns and values in conditions."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    NestedField,
    StructType,
    TimeType,
    UUIDType,
)

from archiver.errors import ConfigError
from archiver.records.table_columns import table_columns
from archiver.records.where import Where
from schema_mapping import Assignment, LedgerState, MappingOptions, assign
from tests.support.schemas.proto_text import compile_text

PROTO = """
enum Level { LOW = 0; HIGH = 1; }
message Customer { string id = 1; bytes token = 2; }
message M {
  Customer customer = 1; int32 small = 2; int64 large = 3; uint32 unsigned = 4; float narrow = 5; double wide = 6;
  bool paid = 7; repeated string tags = 8; map<string, int32> counts = 9; Level level = 10; uint64 huge = 11;
  google.protobuf.Timestamp at = 12; google.protobuf.StringValue nick = 13;
}
"""
LONG = "123456789012345678901234567890123456.78"
TABLE = assign(
    LedgerState(),
    value=compile_text(
        'syntax = "proto3"; package t; import "google/protobuf/timestamp.proto";'
        ' import "google/protobuf/wrappers.proto";' + PROTO
    ),
    options=MappingOptions(uint64="decimal", well_known_types="native"),
)


def columns(text: str, table: Assignment = TABLE, schema: Schema | None = None) -> list[Any]:
    selected = table_columns(Where.parse(text), schema or table.iceberg_schema, table.state)
    return [*selected.values()]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("val.customer.id = 'it''s'", "it's"),
        ("val.customer.token = 'ä'", "ä".encode()),
        ("val.customer.token = 0x00ff", b"\x00\xff"),
        ("val.small = -2147483648", -(2**31)),
        ("val.small = 1e3", 1000),
        ("val.large = 9223372036854775807", 2**63 - 1),
        ("val.narrow = 0.1", 0.1),
        ("val.wide = 7", 7.0),
        ("val.huge = 18446744073709551615", Decimal(2**64 - 1)),
        ("val.paid = false", False),
        ("val.at = 2026-01-31T01:00:00.000001+01:00", datetime(2026, 1, 31, 0, 0, 0, 1, UTC)),
        ("val.at = '2026-01-31T00:00:00Z'", datetime(2026, 1, 31, tzinfo=UTC)),
        ("val.nick = ''", ""),
        ("val.unsigned != 3", 3),
        ("val.large <= 3", 3),
        ("val.huge > 3", Decimal(3)),
        ("val.customer.token ends with 0xff", b"\xff"),
    ],
)
def test_values_of_each_type(text: str, value: object) -> None:
    (column,) = columns(text)
    assert (column.value, type(column.value)) == (value, type(value))
    assert column.field_id == TABLE.iceberg_schema.find_field(text.partition(" ")[0]).field_id


def test_the_columns_that_tell_what_a_column_does_not() -> None:
    (column,) = columns("val.customer.id = 'x'")
    ids = {name: TABLE.iceberg_schema.find_field(name).field_id for name in TABLE.iceberg_schema.column_names}
    assert (column.part, column.part_id, column.errors) == ("val", ids["val"], ids["val.__err__"])
    assert column.unrecognized == (ids["val.__unrecognized__"], ids["val.customer.__unrecognized__"])


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("val.customer.ID = 'x'", "the table has no such column; `val.customer` has these", "token"),
        ("val.__raw__ = 0xff", "the table has no such column; `val` has these", "customer"),
        ("val.unsigned < 3", "large ones are negative in it: compare it with `=`, `!=` or `in`", "val.unsigned"),
        ("val.paid >= true", "the column is true or false: `>=` says nothing of it", "val.paid"),
        ("val.small contains 1", "of type int, and only text and bytes compare with `contains`", "val.small"),
        ("val.customer.id > 3", "compare it with text in quotes", "val.customer.id"),
        ("val.level != 'LOW'", "the column is an enum", "val.level"),
        ("key.id = 1", "`key` has no columns in the table, since no schema is configured for it", "key.id"),
        ("val.customer = 'x'", "`val.customer` is a struct: name one of its columns", "token"),
        ("val.small.x = 1", "`val.small` is of type int, with nothing below it", "val.small.x"),
        ("val.tags = 'x'", "`val.tags` is a list, and there are no conditions on what lies in one", "val.tags"),
        ("val.tags.element = 'x'", "`val.tags` is a list", "val.tags.element"),
        ("val.counts.value = 1", "`val.counts` is a map", "query the table for the partitions and offsets"),
        ("val.level = 'HIGH'", "the column is an enum", "query the table for the partitions and offsets"),
        ("val.customer.id = 1", "of type string: compare it with text in quotes", "val.customer.id"),
        ("val.customer.id = 0xff", "of type string: compare it with text in quotes", "val.customer.id"),
        ("val.customer.token = 1", "of type binary: compare it with text in quotes, or bytes", "val.customer.token"),
        ("val.small = '1'", "of type int: compare it with a whole number", "val.small"),
        ("val.small = 1.5", "of type int: compare it with a whole number", "val.small"),
        ("val.small = 2147483648", "no value of a column of type int equals this one.*-1 is the largest", "val.small"),
        ("val.large = -9223372036854775809", "no value of a column of type long equals", "val.large"),
        ("val.narrow = 1e39", "no value of a column of type float equals this one", "val.narrow"),
        ("val.wide = 1e309", "no value of a column of type double equals this one", "val.wide"),
        ("val.huge = 1.5", r"no value of a column of type decimal\(20, 0\) equals this one", "val.huge"),
        ("val.huge = 1e20", r"no value of a column of type decimal\(20, 0\) equals this one", "val.huge"),
        ("val.huge = 1e-999999999", "no value of a column of type decimal", "val.huge"),
        ("val.huge = 1e999999999", r"no value of a column of type decimal\(20, 0\) equals this one", "val.huge"),
        ("val.small = 1e999999999", "no value of a column of type int equals this one", "val.small"),
        ("val.paid = 1", "of type boolean: compare it with true or false", "val.paid"),
        ("val.at = '2026-01-31T00:00:00'", "compare it with a time with a zone", "val.at"),
        ("val.at = 'yesterday'", "compare it with a time with a zone", "val.at"),
        ("val.at = 7", "compare it with a time with a zone", "val.at"),
    ],
)
def test_what_no_column_can_be_compared_with(text: str, error: str, told: str) -> None:
    with pytest.raises(ConfigError, match=error) as raised:
        columns(text)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (DateType(), "2026-01-31", date(2026, 1, 31)),
        (DateType(), "'2026-02-30'", "compare it with a day"),
        (UUIDType(), "'00000000-0000-0000-0000-0000000000ff'", UUID(int=255).bytes),
        (UUIDType(), "'ff'", "compare it with a UUID in quotes"),
        (FixedType(2), "0x00ff", b"\x00\xff"),
        (FixedType(2), "0xff", "no value of a column of type fixed"),
        (DecimalType(4, 2), "-99.99", Decimal("-99.99")),
        (DecimalType(4, 2), "100", "no value of a column of type decimal"),
        (DecimalType(38, 2), LONG, Decimal(LONG)),
        (DecimalType(38, 2), f"{LONG}9", "no value of a column of type decimal"),
        (TimeType(), "'00:00:00'", "there are no conditions on this type"),
    ],
)  # fmt: skip
def test_types_of_other_formats(kind: IcebergType, text: str, value: object) -> None:
    schema = Schema(NestedField(2, "val", StructType(NestedField(100, "x", kind))))
    if isinstance(value, str):
        with pytest.raises(ConfigError, match=value):
            columns(f"val.x = {text}", schema=schema)
    else:
        assert columns(f"val.x = {text}", schema=schema)[0].value == value


def test_a_column_that_was_an_enum_once_is_refused() -> None:
    first = assign(LedgerState(), value=compile_text("enum E { A = 0; } message M { E e = 1; }"))
    second = assign(first.state, value=compile_text("message M { }"))
    with pytest.raises(ConfigError, match="the column is an enum"):
        columns("val.e = 'A'", second)


def test_former_columns_are_known_unless_selected() -> None:
    first = assign(LedgerState(), value=compile_text("message M { string id = 1; }"))
    second = assign(first.state, value=compile_text("message M { int64 id = 1; }"))
    old = next(entry for entry in second.state.entries if entry.name.startswith("id_deleted"))
    (selected,) = columns("val.id = 1", second)
    assert selected.former == (old.field_id,)
    assert [column.former for column in columns(f"val.id = 1 or val.{old.name} = '1'", second)] == [(), ()]
