"""How each column of a file is stored."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from archiver.storage.parquet.leaves import ParquetLeaf


class NullNotAllowed(ValueError): ...


class Encoding(IntEnum):
    """Encodings.md of parquet-format, with the numbers of parquet.thrift.

    `DIFFERENCES` are for integers and times, `SHARED_STARTS` for strings and bytes. A dictionary ends at 1 MiB; the row
    group's rest is plain.
    """

    PLAIN = 0
    DIFFERENCES = 5
    SHARED_STARTS = 7
    DICTIONARY = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlan:
    """`level` is zstd's (None: uncompressed).

    `filter_size`: bytes per row group. `has_statistics` adds bounds to footer and pages.
    """

    leaf: ParquetLeaf
    encoding: Encoding
    level: int | None
    has_statistics: bool
    filter_size: int = 0
