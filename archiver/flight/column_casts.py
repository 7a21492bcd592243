"""Columns of clients as a mapping's columns: ordered by name, cast without loss, null if they are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from archiver.errors import BadBatch
from schema_mapping import names
from schema_mapping.columns.arrow import field_id_of


@dataclass(frozen=True, slots=True)
class ColumnPlace:
    """A column's dotted name, and the batch's row of each of its elements. `required` are ids of members."""

    name: str
    required: frozenset[int] = frozenset()
    row_of: Callable[[int], int] = int

    def member(self, name: str) -> ColumnPlace:
        return replace(self, name=f"{self.name}.{name}")

    def elements(self, name: str, offsets: pa.Array) -> ColumnPlace:
        def row_of(element: int) -> int:
            return self.row_of(int(np.searchsorted(offsets.to_numpy(), element, side="right")) - 1)

        return replace(self, name=f"{self.name}.{name}", row_of=row_of)


def as_struct(columns: Mapping[str, pa.Array], mapped: pa.StructType, rows: int, place: ColumnPlace) -> pa.StructArray:
    """The rows of a mapping. `columns` must fit (`column_types.misfits`).

    Raises BadBatch, which names the column and the row, for values that have no equal one in the column.
    """
    members = [
        as_column(columns[field.name], field.type, place.member(field.name))
        if field.name in columns
        else pa.nulls(rows, field.type)
        for field in mapped
    ]
    _check_members(members, mapped, place, None)
    return pa.StructArray.from_arrays(members, fields=list(mapped))


def as_column(
    array: pa.Array, mapped: pa.DataType, place: ColumnPlace, hidden: pa.BooleanArray | None = None
) -> pa.Array:
    """`hidden` rows are null, because a struct around them is: kernels may read the columns inside."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    if kinds.is_null(array.type):
        return pa.nulls(len(array), mapped)
    if kinds.is_struct(mapped):
        return _as_struct(array, mapped, place, hidden)
    if kinds.is_list(mapped) or kinds.is_map(mapped):
        return _as_list(array, mapped, place, hidden)
    column = array if array.type == mapped else _cast(array, mapped, place)
    return column if hidden is None else _without(column, hidden)


def _as_struct(array: pa.Array, mapped: pa.StructType, place: ColumnPlace, hidden: pa.BooleanArray | None) -> pa.Array:
    nulls = _nulls(array, hidden)
    sent = {field.name: array.field(index) for index, field in enumerate(array.type)}
    members = [
        as_column(sent[field.name], field.type, place.member(field.name), nulls)
        if field.name in sent
        else pa.nulls(len(array), field.type)
        for field in mapped
    ]
    _check_members(members, mapped, place, nulls)
    return pa.StructArray.from_arrays(members, fields=list(mapped), mask=nulls)


def _check_members(
    members: Sequence[pa.Array], mapped: pa.StructType, place: ColumnPlace, nulls: pa.BooleanArray | None
) -> None:
    for field, member in zip(mapped, members, strict=True):
        if not (member.null_count and place.required and field_id_of(field) in place.required):
            continue
        missing = member.is_null() if nulls is None else pc.and_not(member.is_null(), nulls)
        if missing.true_count:
            column = place.member(field.name)
            raise BadBatch("a required field is null", column=column.name, row=column.row_of(_first(missing)))


def _as_list(array: pa.Array, mapped: pa.DataType, place: ColumnPlace, hidden: pa.BooleanArray | None) -> pa.Array:
    if kinds.is_large_list(array.type) or kinds.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    nulls = _nulls(array, hidden)
    if nulls is not None:
        array = _without(array, nulls)  # also drops elements of null lists

    def inner(elements: pa.Array, field: pa.Field, name: str) -> pa.Array:
        below = place.elements(name, array.offsets)
        column = as_column(elements, field.type, below)
        if column.null_count and not field.nullable:
            row = below.row_of(_first(column.is_null()))
            raise BadBatch("an element is null, and may not be", column=below.name, row=row)
        return column

    if kinds.is_list(mapped):
        elements = inner(array.values, mapped.value_field, names.ELEMENT_NAME)
        return pa.ListArray.from_arrays(array.offsets, elements, type=mapped, mask=nulls)
    keys = inner(array.keys, mapped.key_field, names.MAP_KEY_NAME)
    items = inner(array.items, mapped.item_field, names.MAP_VALUE_NAME)
    return pa.MapArray.from_arrays(array.offsets, keys, items, type=mapped, mask=nulls)


def _nulls(array: pa.Array, hidden: pa.BooleanArray | None) -> pa.BooleanArray | None:
    if not array.null_count:
        return hidden
    return array.is_null() if hidden is None else pc.or_(array.is_null(), hidden)


def _without(array: pa.Array, hidden: pa.BooleanArray) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(array.type, _without(array.storage, hidden))
    return pc.if_else(hidden, pa.scalar(None, array.type), array)


def _cast(array: pa.Array, mapped: pa.DataType, place: ColumnPlace) -> pa.Array:
    try:
        return array.cast(mapped)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        lost = _first_lost(array, mapped)
        row = {} if lost is None else {"row": place.row_of(lost)}
        raise BadBatch(f"a value has no equal one of the type {mapped}: {error}", column=place.name, **row) from None


def _first_lost(array: pa.Array, mapped: pa.DataType) -> int | None:
    """The first value that a cast would change, if that can be found."""
    try:
        kept = array.cast(mapped, safe=False).cast(array.type, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    lost = pc.fill_null(pc.not_equal(array, kept), False)  # noqa: FBT003
    return _first(lost) if lost.true_count else None


def _first(places: pa.BooleanArray) -> int:
    return int(pc.index(places, True).as_py())
