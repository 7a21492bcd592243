"""How each column of a file is stored."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from archiver.storage.parquet.leaves import ParquetLeaf


class NullNotAllowed(ValueError):
    """A row has a null although its column's fields allow none."""


class Encoding(IntEnum):
    """How values become bytes: Encodings.md of parquet-format, with the numbers of parquet.thrift.

    `DIFFERENCES` are for integers and times, `SHARED_STARTS` for strings and bytes. After a dictionary of 1 MiB the row
    group is plain.
    """

    PLAIN = 0
    DIFFERENCES = 5
    SHARED_STARTS = 7
    DICTIONARY = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlan:
    """How the pages of one leaf are made.

    `level` is zstd's, None for none. `has_statistics` adds extremes to footer and pages. `filter_size` is in bytes a
    row group, 0 for none.
    """

    leaf: ParquetLeaf
    encoding: Encoding
    level: int | None
    has_statistics: bool
    filter_size: int = 0
