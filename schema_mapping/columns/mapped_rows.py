"""Rows of other readers as a mapping's rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import pyarrow as pa

from schema_mapping import names
from schema_mapping.errors import KernelError


def as_mapped(rows: pa.StructArray, wanted: pa.StructType) -> pa.StructArray:
    """Raises KernelError if the rows have other columns."""
    # Readers differ in large strings, dictionaries and nullability, and a cast evens these out. Names and order must be
    # the mapping's at every depth, because a cast would fill a missing column with nulls.
    pairs = zip_longest(_columns(rows.type), _columns(wanted))
    different = next((theirs or ours for ours, theirs in pairs if ours != theirs), None)
    if different is not None or not pa.types.is_struct(rows.type):
        raise wrong_type(rows.type, wanted, column=different)
    try:
        return rows.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowIndexError) as error:
        raise wrong_type(rows.type, wanted) from error


def _columns(kind: pa.DataType, at: tuple[str, ...] = ()) -> Iterator[str]:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    inner: list[tuple[str, pa.DataType]] = []
    if pa.types.is_struct(kind):
        inner = [(field.name, field.type) for field in kind]
    elif pa.types.is_map(kind):
        inner = [(names.MAP_KEY_NAME, kind.key_type), (names.MAP_VALUE_NAME, kind.item_type)]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = [(names.ELEMENT_NAME, kind.value_type)]
    for name, below in inner:
        yield ".".join((*at, name))
        yield from _columns(below, (*at, name))


def wrong_type(found: pa.DataType, wanted: pa.DataType, *, column: str | None = None) -> KernelError:
    at = {} if column is None else {"column": column}
    return KernelError("rows to encode don't have the mapping's type", **at, found=str(found), wanted=str(wanted))
