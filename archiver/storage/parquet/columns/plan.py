"""How each column of a file is stored."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from archiver.storage.parquet.leaves import ParquetLeaf


class NullNotAllowed(ValueError):
    """A row has a null although its column's fields allow none."""


class Encoding(IntEnum):
    """How values become bytes: Encodings.md of parquet-format, with the numbers of parquet.thrift.

    `DIFFERENCES` are for integers and times, `SHARED_STARTS` for strings and bytes. A dictionary over 1 MiB is given
    up: the rest of the row group is plain. Booleans have no dictionary.
    """

    PLAIN = 0
    DIFFERENCES = 5
    SHARED_STARTS = 7
    DICTIONARY = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlan:
    """How the pages of one leaf are made.

    `level` is zstd's; None leaves pages uncompressed. `has_statistics` adds extremes to the footer and to each page. A
    bloom filter takes `filter_size` bytes a row group; 0 means none.
    """

    leaf: ParquetLeaf
    encoding: Encoding
    level: int | None
    has_statistics: bool
    filter_size: int = 0
