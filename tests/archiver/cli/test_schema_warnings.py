"""`archiver schema show`: limits of engines, and catalogs that rewrite files, before and after the first record."""

from __future__ import annotations

from pathlib import Path

from archiver.cli.schema import TableStatement, _newest_schema, _warnings
from archiver.config import load_config
from schema_mapping import LedgerState, assign
from tests.support.schemas.proto_text import compile_text

CONFIG = """
[kafka]
"bootstrap.servers" = "127.0.0.1:1"
[registry]
dsn = "postgresql://127.0.0.1:1/none"
[catalog]
uri = "{uri}"
[topics.orders]
"""


def warnings(folder: Path, uri: str) -> list[str]:
    path = folder / "archiver.toml"
    path.write_text(CONFIG.format(uri=uri))
    lines = "".join(f"int32 f{number} = {number};" for number in range(1, 1_501))
    source = compile_text(f'syntax = "proto3"; package t; message M {{ {lines} }}')
    state = assign(LedgerState(), value=source).state
    return _warnings(_newest_schema(state), load_config(path, {}))


def test_limits_and_the_catalog_are_named(tmp_path: Path) -> None:
    (limit,) = warnings(tmp_path, "http://127.0.0.1:1")
    assert "Snowflake takes at most 1,000 sub-columns of a structured column, and `val` has 1,505" in limit
    for uri, name in (
        ("https://s3tables.eu-west-1.amazonaws.com/iceberg", "S3 Tables"),
        ("https://x.cloud.databricks.com/api/2.1/unity-catalog/iceberg-rest", "Unity Catalog"),
        ("https://biglake.googleapis.com/iceberg/v1/restcatalog", "BigLake"),
    ):
        assert [text.startswith(name) for text in warnings(tmp_path, uri)] == [False, True]


def test_warnings_of_a_statement_are_comments() -> None:
    statement = TableStatement(table="kafka.orders", ddl="CREATE TABLE x (a INT)", warnings=("too wide",))
    assert statement.text().plain == "-- warning: too wide\nCREATE TABLE x (a INT);"
