"""What a footer says of its column chunks, read from its bytes.

pyarrow's `RowGroupMetaData.column` ends the process where the footer contradicts itself: C++ throws, and nothing there
catches it. So a footer that may be damaged is looked at here first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import pyarrow.parquet as pq

from archiver.storage.parquet.compact_thrift import (
    BINARY,
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
_BOUND_BYTES: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}

# By their ids and kinds in parquet.thrift: of FileMetaData and RowGroup,
_GROUPS, _COLUMNS, _ROWS = (4, LIST), (1, LIST), (3, I64)
# of ColumnChunk,
_METADATA, _CRYPTO, _OWN_KEY = (3, STRUCT), (8, STRUCT), (2, STRUCT)
# of ColumnMetaData,
_TYPE, _ENCODINGS, _CODEC, _VALUES = (1, I32), (2, LIST), (4, I32), (5, I64)
_UNPACKED_SIZE, _SIZE, _DATA_PAGE, _DICTIONARY_PAGE = (6, I64), (7, I64), (9, I64), (11, I64)
_STATISTICS, _SIZE_STATISTICS = (12, STRUCT), (16, STRUCT)
# of Statistics and SizeStatistics.
_BOUNDS = ((1, BINARY), (2, BINARY), (5, BINARY), (6, BINARY))
_TEXT_BYTES, _REPETITION_LEVELS, _DEFINITION_LEVELS = (1, I64), (2, LIST), (3, LIST)


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """A column chunk, as the footer describes it. `rows` are those of its row group.

    The levels are histograms; they are empty where the footer has none.
    """

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
    has_text_bytes: bool
    bounds: Sequence[memoryview]
    is_encrypted: bool
    has_own_key: bool

    @classmethod
    def of(cls, rows: int, column: Fields) -> Self:
        """Raises ThriftError where something is missing."""
        metadata: Fields = struct(column, _METADATA)
        crypto: Fields | None = column.get(_CRYPTO)
        sizes: Fields = metadata.get(_SIZE_STATISTICS, {})
        statistics: Fields = metadata.get(_STATISTICS, {})
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
            has_text_bytes=_TEXT_BYTES in sizes,
            bounds=[statistics[one] for one in _BOUNDS if one in statistics],
            is_encrypted=crypto is not None,
            has_own_key=crypto is not None and _OWN_KEY in crypto,
        )

    def may_be_asked(self, column: pq.ColumnSchema) -> bool:
        """Whether pyarrow takes the chunk for one of this column, and its bounds. Else asking ends the process."""
        bound = _BOUND_BYTES.get(self.physical_type)
        return (
            not self.has_own_key
            and self.physical_type == column.physical_type
            and len(self.repetition_levels) in (0, column.max_repetition_level + 1)
            and len(self.definition_levels) in (0, column.max_definition_level + 1)
            and not (self.has_text_bytes and self.physical_type != "BYTE_ARRAY")
            and (bound is None or all(len(one) in (0, bound) for one in self.bounds))
        )

    def is_of(self, column: pq.ColumnSchema) -> bool:
        """Whether the chunk certainly has the type and the levels that the schema gives its column."""
        nesting = column.max_repetition_level
        return (
            not self.is_encrypted
            and self.physical_type == column.physical_type
            and _tell(self.repetition_levels, nesting, self.values)
            and _tell(self.definition_levels, column.max_definition_level, self.values)
            and self.rows == (self.repetition_levels[0] if nesting else self.values)
        )


class FooterChunks:
    """The column chunks of a file."""

    def __init__(self, end: FileEnd) -> None:
        """Raises ThriftError where the footer can't be read."""
        self.pages_end = end.footer_start or 0
        """No page lies beyond."""
        fields, _ = read_struct(end.footer)
        self._groups = listed(fields, _GROUPS, STRUCT)
        self._columns: dict[int, tuple[int, Sequence[Fields]]] = {}

    def column(self, group: int, index: int) -> ColumnChunk:
        """A chunk, by the numbers of its row group and its column. Raises ThriftError where the footer has none."""
        try:
            if group not in self._columns:
                fields: Fields = self._groups[group]
                self._columns[group] = number(fields, _ROWS), listed(fields, _COLUMNS, STRUCT)
            rows, columns = self._columns[group]
            return ColumnChunk.of(rows, columns[index])
        except IndexError as error:
            raise ThriftError from error

    def may_be_asked(self, group: int, column: pq.ColumnSchema, index: int) -> bool:
        """Whether pyarrow can be asked for a chunk and its bounds. What isn't described here, it tells itself."""
        try:
            return self.column(group, index).may_be_asked(column)
        except ThriftError:
            return True


def _tell(levels: Sequence[int], highest: int, values: int) -> bool:
    """Whether a histogram tells that levels go up to `highest`, and not that there are other values."""
    if not levels:
        return highest == 0
    return len(levels) == highest + 1 and sum(levels) == values
