"""What one may ask of views, by name: an engine, rows, a form of bytes. Light, since the command line loads it."""

from __future__ import annotations

from enum import StrEnum


class QueryEngine(StrEnum):
    """An engine that views are written for."""

    SPARK = "spark"
    TRINO = "trino"
    DUCKDB = "duckdb"
    CLICKHOUSE = "clickhouse"
    ATHENA = "athena"


class Rows(StrEnum):
    """Which rows of the table a view has. The value ends the view's name."""

    FLAT = "flat"
    LATEST = "latest"
    ERRORS = "errors"


class ByteForm(StrEnum):
    """How a view shows bytes: as they are, or as text.

    UTF8 shows bytes that aren't UTF-8 as `0x` and their hex digits.
    """

    RAW = "raw"
    HEX = "hex"
    BASE64 = "base64"
    UTF8 = "utf8"
