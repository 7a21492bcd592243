"""The options of views. Imports little, for the command line."""

from __future__ import annotations

from enum import StrEnum


class QueryEngine(StrEnum):
    """An engine for which views are written."""

    SPARK = "spark"
    TRINO = "trino"
    DUCKDB = "duckdb"
    CLICKHOUSE = "clickhouse"
    ATHENA = "athena"


class Rows(StrEnum):
    """The rows of a view. The value ends the view's name."""

    FLAT = "flat"
    LATEST = "latest"
    ERRORS = "errors"


class ByteForm(StrEnum):
    """The form of bytes. UTF8 shows invalid UTF-8 as `0x` and hex digits."""

    RAW = "raw"
    HEX = "hex"
    BASE64 = "base64"
    UTF8 = "utf8"
