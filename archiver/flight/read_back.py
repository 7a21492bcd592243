"""Finds the first value that a client sent and that isn't read back from the encoded bytes.

Encoders write what they can: the first set branch of a union, the last entry of a map's key. A null may be read back
as the format's default.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

_BITS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}


class ChangedValue(NamedTuple):
    row: int
    column: str


def first_difference(sent: pa.Array, read: pa.Array, path: str) -> ChangedValue | None:
    """Both have the same type. Values of null structs, and elements of null lists, must be null or missing."""
    if kinds.is_struct(sent.type):
        lost = _first(pc.and_(sent.is_valid(), read.is_null()))
        if lost is not None:
            return ChangedValue(lost, path)
        members = (
            first_difference(sent.field(index), read.field(index), f"{path}.{field.name}")
            for index, field in enumerate(sent.type)
        )
        return min(filter(None, members), default=None)
    if kinds.is_list(sent.type) or kinds.is_map(sent.type):
        return _in_lists(sent, read, path)
    if sent.type in _BITS:  # NaN equals no number
        sent, read = (array.view(_BITS[array.type]) for array in (sent, read))
    elif isinstance(sent, pa.ExtensionArray):
        sent, read = sent.storage, read.storage
    equal = pc.equal(sent, read)
    lost = _first(pc.and_(sent.is_valid(), pc.invert(equal.fill_null(False))))  # noqa: FBT003
    return None if lost is None else ChangedValue(lost, path)


def _in_lists(sent: pa.Array, read: pa.Array, path: str) -> ChangedValue | None:
    sizes = [pc.fill_null(pc.list_value_length(_as_list(array)), 0) for array in (sent, read)]
    lost = _first(pc.not_equal(*sizes))
    lost = lost if lost is not None else _first(pc.and_(sent.is_valid(), read.is_null()))
    if lost is not None:
        return ChangedValue(lost, path)
    elements, others = (_as_list(array).flatten() for array in (sent, read))
    inner = first_difference(elements, others, path)
    if inner is None:
        return None
    ends = np.cumsum(sizes[0].to_numpy(zero_copy_only=False))
    return ChangedValue(int(np.searchsorted(ends, inner.row, side="right")), inner.column)


def _as_list(array: pa.Array) -> pa.ListArray:
    """A map as a list of structs."""
    if not kinds.is_map(array.type):
        return array
    entry = pa.struct([array.type.key_field, array.type.item_field])
    return array.cast(pa.list_(pa.field("entries", entry, nullable=False)))


def _first(places: pa.BooleanArray) -> int | None:
    if not places.true_count:
        return None
    return int(pc.index(places, True).as_py())
