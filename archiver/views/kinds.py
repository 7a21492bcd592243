"""The options of views. Imports little, for the command line."""

from __future__ import annotations

from enum import StrEnum


class QueryEngine(StrEnum):
    SPARK = "spark"
    TRINO = "trino"
    DUCKDB = "duckdb"
    CLICKHOUSE = "clickhouse"
    ATHENA = "athena"


class Rows(StrEnum):
    """The value ends the view's name."""

    FLAT = "flat"
    LATEST = "latest"
    ERRORS = "errors"


class ByteForm(StrEnum):
    """UTF8 shows invalid UTF-8 as `0x` and hex digits."""

    RAW = "raw"
    HEX = "hex"
    BASE64 = "base64"
    UTF8 = "utf8"
