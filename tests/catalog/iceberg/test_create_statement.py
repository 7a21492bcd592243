"""Spark's statement that creates a table."""

from __future__ import annotations

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
    TimeType,
)

from catalog.errors import UnnamedType
from catalog.iceberg.create_statement import create_statement


def column(name: str, kind: IcebergType, number: int = 1) -> NestedField:
    return NestedField(field_id=number, name=name, field_type=kind, required=False)


def test_types_have_the_names_of_spark() -> None:
    inner = StructType(column("a-b", StringType(), 4), column("n", DecimalType(20, 0), 5))
    schema = Schema(
        column("kafka", StructType(column("offset", LongType(), 2)), 1),
        column("many", ListType(6, inner, element_required=False), 3),
        column("by_name", MapType(8, StringType(), 9, TimestamptzType(), value_required=False), 7),
        column("__raw__", BinaryType(), 10),
        column("9", IntegerType(), 11),
    )
    statement = create_statement("kafka.or-ders", schema)
    assert statement == (
        "CREATE TABLE kafka.`or-ders` (\n"
        "  kafka STRUCT<offset: BIGINT>,\n"
        "  many ARRAY<STRUCT<`a-b`: STRING, n: DECIMAL(20, 0)>>,\n"
        "  by_name MAP<STRING, TIMESTAMP>,\n"
        "  __raw__ BINARY,\n"
        "  `9` INT\n"
        ") USING iceberg TBLPROPERTIES ('format-version' = '2')"
    )


def test_a_type_that_spark_cannot_name() -> None:
    schema = Schema(column("val", StructType(column("at", TimeType(), 2))))
    with pytest.raises(UnnamedType, match="can't make a column of the type time") as caught:
        create_statement("kafka.orders", schema)
    assert caught.value.context["column"] == "val.at"
