"""A file's schema in Parquet, and its leaves in Arrow's memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from archiver.errors import StorageError
from archiver.storage.exact_type import Exact
from archiver.storage.parquet.compact_thrift import I32, LIST, STRUCT, Fields, packed
from archiver.storage.parquet.file_end import FileEnd
from archiver.storage.parquet.thrift_reader import read_struct

# Of FileMetaData and SchemaElement in parquet.thrift, by id and kind.
SCHEMA, COLUMN_ORDERS = (2, LIST), (7, LIST)
_TYPE, _TYPE_LENGTH, _CHILDREN = (1, I32), (2, I32), (5, I32)

Step: TypeAlias = tuple[int, bool, int]
"""A step towards a leaf: the kind of column, whether it may be null, and the index of the next child."""

# The numbers of walk.pxd and form.pxd.
_STRUCT, _LIST, _LARGE_LIST, _LEAF = range(4)
_BITS, _WORDS, _TEXTS, _LARGE_TEXTS, _FIXED, _DECIMALS = range(6)
_BY_NUMBER, _BY_FLOAT, _BY_BYTES, _BY_DECIMAL = range(4)

_FORMS: Final = (
    (pa.types.is_boolean, _BITS, _BY_NUMBER),
    (pa.types.is_float32, _WORDS, _BY_FLOAT),
    (pa.types.is_float64, _WORDS, _BY_FLOAT),
    (pa.types.is_signed_integer, _WORDS, _BY_NUMBER),
    (pa.types.is_temporal, _WORDS, _BY_NUMBER),
    (pa.types.is_string, _TEXTS, _BY_BYTES),
    (pa.types.is_binary, _TEXTS, _BY_BYTES),
    (pa.types.is_large_string, _LARGE_TEXTS, _BY_BYTES),
    (pa.types.is_large_binary, _LARGE_TEXTS, _BY_BYTES),
    (pa.types.is_fixed_size_binary, _FIXED, _BY_BYTES),
    (pa.types.is_decimal128, _DECIMALS, _BY_DECIMAL),
)
"""The memory and order of a type's values. Numbers are as wide in pages as in Arrow's memory.

Parquet has no times in seconds.
"""

_BYTE_ARRAY: Final = 6
_WIDTHS: Final = {0: 1, 1: 4, 2: 8, 4: 4, 5: 8, _BYTE_ARRAY: 0}
"""Bytes of a value, by physical type. The schema has the width of the fixed type."""
_KNOWN_SCHEMAS: Final = 16


@dataclass(frozen=True, slots=True)
class Form:
    """In memory, comparisons and pages, by the numbers of form.pxd."""

    memory: int
    order: int
    physical_type: int
    width: int


@dataclass(frozen=True, slots=True)
class LeafPlace:
    top: int
    steps: tuple[Step, ...]
    form: Form


@dataclass(frozen=True, slots=True)
class FileSchema:
    fields: Fields
    leaves: tuple[LeafPlace, ...]

    @classmethod
    def of_columns(cls, schema: pa.Schema) -> FileSchema:
        """Raise StorageError for a type that no table's column has."""
        return _known(Exact.of_schema(schema))


@lru_cache(maxsize=_KNOWN_SCHEMAS)
def _known(columns: Exact) -> FileSchema:
    sink = pa.BufferOutputStream()
    schema = pa.schema(list(columns.type))
    pq.ParquetWriter(sink, schema, version="2.6", store_schema=False).close()
    footer, _ = read_struct(FileEnd.read(pa.BufferReader(sink.getvalue())).footer)
    _, elements = footer[SCHEMA]
    leaves = (element for element in elements if _CHILDREN not in element)
    ways = [(top, *way) for top, field in enumerate(schema) for way in _ways(field, ())]
    places = tuple(
        LeafPlace(top, steps, _form(field, element[_TYPE], element.get(_TYPE_LENGTH)))
        for (top, steps, field), element in zip(ways, leaves, strict=True)
    )
    return FileSchema(
        {
            field: (STRUCT, [packed(field_value) for field_value in footer[field][1]])
            for field in (SCHEMA, COLUMN_ORDERS)
        },
        places,
    )


def _ways(field: pa.Field, before: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], pa.Field]]:
    kind, nullable = field.type, field.nullable
    if pa.types.is_struct(kind):
        for index, child in enumerate(kind):
            yield from _ways(child, (*before, (_STRUCT, nullable, index)))
    elif pa.types.is_map(kind):
        for index, child in enumerate((kind.key_field, kind.item_field)):
            yield from _ways(child, (*before, (_LIST, nullable, 0), (_STRUCT, False, index)))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        step = (_LARGE_LIST if pa.types.is_large_list(kind) else _LIST, nullable, 0)
        yield from _ways(kind.value_field, (*before, step))
    else:
        yield (*before, (_LEAF, nullable, 0)), field


def _form(field: pa.Field, physical_type: int, length: int | None) -> Form:
    kind = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    width = _WIDTHS.get(physical_type, length or 0)
    for is_kind, memory, order in _FORMS:
        if is_kind(kind) and (memory != _WORDS or kind.bit_width == 8 * width) and getattr(kind, "unit", "") != "s":
            return Form(memory, order, physical_type, width)
    raise StorageError("a column has a type that the files of a table can't have", column=field.name, type=str(kind))
