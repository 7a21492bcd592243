"""What a client's columns need once they are a topic's columns: small messages may stand for much memory."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from archiver.flight.column_types import is_listed

_NULL_BYTES: Final = 8


def dictionary_bytes(array: pa.Array) -> int:
    """What texts in dictionaries need as plain columns."""
    if isinstance(array, pa.DictionaryArray):
        sizes = pc.binary_length(array.dictionary.cast(pa.large_binary()))
        return int(pc.sum(sizes.take(array.indices).cast(pa.int64())).as_py() or 0)
    return sum(map(dictionary_bytes, _inner(array)))


def element_count(array: pa.Array) -> int:
    """The elements of all lists and maps."""
    inner = _inner(array)
    own = len(inner[0]) if is_listed(array.type) or kinds.is_map(array.type) else 0
    return own + sum(map(element_count, inner))


def null_bytes(array: pa.Array, mapped: pa.DataType) -> int:
    """What missing columns need, which are null in each row or element."""
    if kinds.is_null(array.type):
        return len(array) * _NULL_BYTES * _width(mapped)
    if kinds.is_struct(array.type):
        sent = {field.name: array.field(index) for index, field in enumerate(array.type)}
        return sum(null_bytes(sent.get(field.name, pa.nulls(len(array))), field.type) for field in mapped)
    return sum(map(null_bytes, _inner(array), _inner_types(mapped)))


def _inner(array: pa.Array) -> list[pa.Array]:
    if kinds.is_struct(array.type):
        return [array.field(index) for index in range(array.type.num_fields)]
    if kinds.is_map(array.type):
        return [array.keys, array.items]
    return [array.values] if is_listed(array.type) else []


def _inner_types(kind: pa.DataType) -> list[pa.DataType]:
    if kinds.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.value_type] if kinds.is_list(kind) else []


def _width(kind: pa.DataType) -> int:
    """The columns of a type, and itself."""
    return 1 + sum(_width(kind.field(index).type) for index in range(kind.num_fields))
