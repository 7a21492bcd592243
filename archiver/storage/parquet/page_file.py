"""Chosen pages of a row group as a Parquet file in memory, for pyarrow.

pyarrow can't skip pages (apache/arrow#39392). Pages are copied byte for byte, so their checksums are checked; the
footer is for these columns alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from archiver.storage.parquet.compact_thrift import I32, I64, LIST, STRUCT, Fields, ThriftError, packed
from archiver.storage.parquet.file_end import MAGIC, FileEnd

# By their ids and kinds in parquet.thrift: of FileMetaData and SchemaElement,
_VERSION, _SCHEMA, _ROWS, _GROUPS, _CHILDREN = (1, I32), (2, LIST), (3, I64), (4, LIST), (5, I32)
# of RowGroup and ColumnChunk,
_COLUMNS, _GROUP_SIZE, _GROUP_ROWS, _FILE_OFFSET, _METADATA = (1, LIST), (2, I64), (3, I64), (2, I64), (3, STRUCT)
# of ColumnMetaData.
_VALUES, _UNPACKED, _SIZE, _DATA_PAGE, _DICTIONARY_PAGE = (5, I64), (6, I64), (7, I64), (9, I64), (11, I64)
_KEPT: Final = frozenset({1, 2, 3, 4, 8})
"""Fields of ColumnMetaData that stay: type, encodings, path, codec, pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenPages:
    """`values` and `unpacked` are from the page headers."""

    column: int
    metadata: Fields
    dictionary: memoryview | None
    pages: Sequence[memoryview]
    values: int
    unpacked: int


def decoded(schema: Sequence[Fields], rows: int, columns: Sequence[ChosenPages]) -> pa.Table:
    """`schema` is the schema of the pages' file.

    Raises ThriftError if the pages don't give these rows, and subclasses of ArrowException for damaged pages.
    """
    ordered = sorted(columns, key=lambda column: column.column)
    content: list[bytes | memoryview] = [MAGIC]
    at, chunks = len(MAGIC), []
    for column in ordered:
        start = at
        pages = [*([column.dictionary] if column.dictionary is not None else []), *column.pages]
        content += pages
        at += sum(map(len, pages))
        data = start + len(column.dictionary or b"")
        metadata = {field: value for field, value in column.metadata.items() if field[0] in _KEPT}
        metadata |= {_VALUES: column.values, _UNPACKED: column.unpacked, _SIZE: at - start, _DATA_PAGE: data}
        if column.dictionary is not None:
            metadata[_DICTIONARY_PAGE] = start
        chunks.append({_FILE_OFFSET: 0, _METADATA: metadata})
    group = {_COLUMNS: (STRUCT, chunks), _GROUP_SIZE: sum(it.unpacked for it in ordered), _GROUP_ROWS: rows}
    elements = _pruned(schema, frozenset(column.column for column in ordered))
    footer: Fields = {_VERSION: 2, _SCHEMA: (STRUCT, elements), _ROWS: rows, _GROUPS: (STRUCT, [group])}
    file = pa.py_buffer(b"".join((*content, FileEnd.of_footer(packed(footer)).data)))
    table = pq.ParquetFile(pa.BufferReader(file), page_checksum_verification=True).read(use_threads=False)
    if table.num_rows != rows:
        raise ThriftError
    return table


def _pruned(schema: Sequence[Fields], kept: frozenset[int]) -> list[Fields]:
    elements = iter([schema[index] for index in range(len(schema))])
    leaves = iter(range(len(schema)))
    return list(_kept_elements(elements, leaves, kept))


def _kept_elements(elements: Iterator[Fields], leaves: Iterator[int], kept: frozenset[int]) -> Iterator[Fields]:
    element = next(elements)
    count = element.get(_CHILDREN)
    if count is None:
        if next(leaves) in kept:
            yield element
        return
    children = [list(_kept_elements(elements, leaves, kept)) for _ in range(count)]
    inside = [child for child in children if child]
    if inside:
        yield {**element, _CHILDREN: len(inside)}
        for child in inside:
            yield from child


def merged(schema: pa.Schema, parts: Sequence[Mapping[str, pa.Array]]) -> pa.RecordBatch:
    """Structs have members from several parts."""
    fields, arrays = [], []
    for field in schema:
        columns = [part[field.name] for part in parts if field.name in part]
        if columns:
            column = _merged(field.type, columns)
            fields.append(field.with_type(column.type))
            arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _merged(kind: pa.DataType, columns: Sequence[pa.Array]) -> pa.Array:
    if len(columns) == 1:
        return columns[0]
    fields, arrays = [], []
    for field in kind:
        members = [column.field(field.name) for column in columns if column.type.get_field_index(field.name) >= 0]
        if members:
            member = _merged(field.type, members)
            fields.append(field.with_type(member.type))
            arrays.append(member)
    first = columns[0]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=first.is_null() if first.null_count else None)
