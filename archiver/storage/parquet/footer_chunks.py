"""A footer's column chunks, parsed without pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import pyarrow.parquet as pq

from archiver.storage.parquet.compact_thrift import (
    I32,
    I64,
    LIST,
    STRUCT,
    Fields,
    ThriftError,
    listed,
    number,
    struct,
)
from archiver.storage.parquet.file_end import FileEnd
from archiver.storage.parquet.thrift_reader import read_struct

TYPES: Final = (
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)
"""The physical types, by their numbers in parquet.thrift."""

# By their ids and kinds in parquet.thrift: of FileMetaData and RowGroup,
_SCHEMA, _GROUPS, _COLUMNS, _ROWS = (2, LIST), (4, LIST), (1, LIST), (3, I64)
# of ColumnChunk,
_METADATA, _CRYPTO = (3, STRUCT), (8, STRUCT)
# of ColumnMetaData,
_TYPE, _ENCODINGS, _CODEC, _VALUES = (1, I32), (2, LIST), (4, I32), (5, I64)
_UNPACKED_SIZE, _SIZE, _DATA_PAGE, _DICTIONARY_PAGE = (6, I64), (7, I64), (9, I64), (11, I64)
_SIZE_STATISTICS = (16, STRUCT)
# of SizeStatistics.
_REPETITION_LEVELS, _DEFINITION_LEVELS = (2, LIST), (3, LIST)


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """Levels are histograms."""

    rows: int
    physical_type: str
    codec: int
    encodings: frozenset[int]
    values: int
    size: int
    unpacked_size: int
    start: int
    repetition_levels: Sequence[int]
    definition_levels: Sequence[int]
    is_encrypted: bool

    @classmethod
    def parse(cls, rows: int, column: Fields) -> Self:
        """Raise ThriftError if something is missing."""
        metadata: Fields = struct(column, _METADATA)
        sizes: Fields = metadata.get(_SIZE_STATISTICS, {})
        kind, start = number(metadata, _TYPE), number(metadata, _DATA_PAGE)
        dictionary = metadata.get(_DICTIONARY_PAGE)
        return cls(
            rows=rows,
            physical_type=TYPES[kind] if 0 <= kind < len(TYPES) else "",
            codec=number(metadata, _CODEC),
            encodings=frozenset(listed(metadata, _ENCODINGS, I32)),
            values=number(metadata, _VALUES),
            size=number(metadata, _SIZE),
            unpacked_size=number(metadata, _UNPACKED_SIZE),
            start=min(start, dictionary) if dictionary else start,
            repetition_levels=listed(sizes, _REPETITION_LEVELS, I64),
            definition_levels=listed(sizes, _DEFINITION_LEVELS, I64),
            is_encrypted=_CRYPTO in column,
        )

    def is_of(self, column: pq.ColumnSchema) -> bool:
        nesting = column.max_repetition_level
        return (
            not self.is_encrypted
            and self.physical_type == column.physical_type
            and _tell(self.repetition_levels, nesting, self.values)
            and _tell(self.definition_levels, column.max_definition_level, self.values)
            and self.rows == (self.repetition_levels[0] if nesting else self.values)
        )


class FooterChunks:
    def __init__(self, end: FileEnd) -> None:
        """Raise ThriftError if the footer can't be read."""
        self.pages_end = end.footer_start or 0
        """No page ends after this position."""
        fields, _ = read_struct(end.footer)
        self.schema: Sequence[Fields] = listed(fields, _SCHEMA, STRUCT)
        """The elements of the schema, parents before their children."""
        self._groups = listed(fields, _GROUPS, STRUCT)
        self._columns: dict[int, tuple[int, Sequence[Fields]]] = {}

    def column(self, group: int, index: int) -> ColumnChunk:
        """Raise ThriftError if the footer has no such chunk."""
        return ColumnChunk.parse(*self.fields(group, index))

    def fields(self, group: int, index: int) -> tuple[int, Fields]:
        """Raises ThriftError if the row group has no such chunk."""
        try:
            if group not in self._columns:
                fields: Fields = self._groups[group]
                self._columns[group] = number(fields, _ROWS), listed(fields, _COLUMNS, STRUCT)
            rows, columns = self._columns[group]
            return rows, columns[index]
        except IndexError as error:
            raise ThriftError from error


def _tell(levels: Sequence[int], highest: int, values: int) -> bool:
    if not levels:
        return highest == 0
    return len(levels) == highest + 1 and sum(levels) == values
