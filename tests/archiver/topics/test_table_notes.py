"""Warnings about tables."""

from __future__ import annotations

from archiver.cli.schema import TableStatement
from archiver.topics.table_notes import table_notes
from schema_mapping import LedgerState, assign
from tests.support.schemas.proto_text import compile_text


def test_limits_and_the_catalog_are_named() -> None:
    lines = "".join(f"int32 f{number} = {number};" for number in range(1, 1_501))
    source = compile_text(f'syntax = "proto3"; package t; message M {{ {lines} }}')
    schema = assign(LedgerState(), value=source).iceberg_schema
    (limit,) = table_notes(schema, {"uri": "http://127.0.0.1:1"})
    assert "Snowflake takes at most 1,000 sub-columns of a structured column, and `val` has 1,505" in limit
    for uri, name in (
        ("https://s3tables.eu-west-1.amazonaws.com/iceberg", "S3 Tables"),
        ("https://x.cloud.databricks.com/api/2.1/unity-catalog/iceberg-rest", "Unity Catalog"),
        ("https://biglake.googleapis.com/iceberg/v1/restcatalog", "BigLake"),
    ):
        assert [text.startswith(name) for text in table_notes(schema, {"uri": uri})] == [False, True]


def test_warnings_of_a_statement_are_comments() -> None:
    statement = TableStatement(table="kafka.orders", ddl="CREATE TABLE x (a INT)", warnings=("too wide",))
    assert statement.text().plain == "-- warning: too wide\nCREATE TABLE x (a INT);"
