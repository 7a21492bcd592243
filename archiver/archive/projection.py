"""Converts a file's columns to the types of the writing mapping, by field id at any depth.

Missing columns are reported: a replay never invents a default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from archiver.errors import ReplayError
from archiver.storage.exact_type import Exact
from archiver.storage.row_columns import field_id
from schema_mapping.columns.arrow import IN_DICTIONARY

Convert: TypeAlias = Callable[[pa.Array], pa.Array]
_KNOWN_PROJECTIONS: Final = 16
"""Cached projections: a table's files need few, and one of 2,000 columns takes three megabytes."""


@dataclass(frozen=True, slots=True)
class Projection:
    convert: Convert
    missing: tuple[str, ...]

    def __call__(self, column: pa.Array) -> pa.Array:
        return self.convert(column)


def compile_projection(
    source: pa.DataType, target: pa.DataType, name: str, *, nulls: frozenset[int] = frozenset()
) -> Projection:
    """Raise ReplayError if the file's type can't hold what the mapping wrote.

    Columns in `nulls` don't count as missing. `name` is for errors.
    """
    missing: list[str] = []
    convert = _compile(source, target, name, _Absent(missing, nulls))
    return Projection(convert or _same, tuple(missing))


def shared_projection(
    source: pa.DataType,
    target: pa.DataType,
    name: str,
    *,
    nulls: frozenset[int] = frozenset(),
    in_dictionaries: bool = False,
) -> Projection:
    return _shared(Exact.of_type(source), Exact.of_type(target), name, nulls, in_dictionaries)


@lru_cache(maxsize=_KNOWN_PROJECTIONS)
def _shared(source: Exact, target: Exact, name: str, nulls: frozenset[int], in_dictionaries: bool) -> Projection:
    kind = with_dictionaries(source.type, target.type) if in_dictionaries else target.type
    return compile_projection(source.type, kind, name, nulls=nulls)


@dataclass(frozen=True, slots=True)
class _Absent:
    missing: list[str]
    nulls: frozenset[int]

    def note(self, field: pa.Field, path: str) -> None:
        if field_id(field) not in self.nulls:
            self.missing.append(path)


def with_dictionaries(source: pa.DataType, target: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(target) and pa.types.is_struct(source):
        theirs = {field_id(field): field.type for field in source}
        kinds = [with_dictionaries(theirs.get(field_id(field), field.type), field.type) for field in target]
        return pa.struct([_with_type(field, kind) for field, kind in zip(target, kinds, strict=True)])
    if pa.types.is_map(target) and pa.types.is_map(source):
        return pa.map_(
            _with_type(target.key_field, with_dictionaries(source.key_type, target.key_type)),
            _with_type(target.item_field, with_dictionaries(source.item_type, target.item_type)),
        )
    if pa.types.is_list(target) and pa.types.is_list(source):
        return pa.list_(_with_type(target.value_field, with_dictionaries(source.value_type, target.value_type)))
    return source if source == IN_DICTIONARY and pa.types.is_string(target) else target


def _with_type(field: pa.Field, kind: pa.DataType) -> pa.Field:
    return field if field.type == kind else field.with_type(kind)


def _compile(source: pa.DataType, target: pa.DataType, name: str, absent: _Absent) -> Convert | None:
    if pa.types.is_struct(target):
        _expect(pa.types.is_struct(source), source, target, name)
        return _compile_struct(source, target, name, absent)
    if pa.types.is_map(target):
        _expect(pa.types.is_map(source), source, target, name)
        return _compile_map(source, target, name, absent)
    if pa.types.is_list(target):
        _expect(pa.types.is_list(source) or pa.types.is_large_list(source), source, target, name)
        return _compile_list(source, target, name, absent)
    if source == target:
        return None
    _expect(not pa.types.is_nested(source), source, target, name)
    return lambda column: pc.cast(column, target)


def _compile_struct(source: pa.StructType, target: pa.StructType, name: str, absent: _Absent) -> Convert | None:
    positions = {field_id(field): index for index, field in enumerate(source)}
    picks: list[tuple[int | None, Convert | None]] = []
    for field in target:
        position = positions.get(field_id(field))
        path = f"{name}.{field.name}"
        if position is None:
            absent.note(field, path)
            picks.append((None, None))
        else:
            picks.append((position, _compile(source.field(position).type, field.type, path, absent)))
    in_place = [position for position, _ in picks] == list(range(source.num_fields))
    if in_place and all(convert is None for _, convert in picks) and source == target:
        return None
    fields = list(target)

    def convert(column: pa.StructArray) -> pa.StructArray:
        children = [
            pa.nulls(len(column), field.type) if position is None else (inner or _same)(column.field(position))
            for field, (position, inner) in zip(fields, picks, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=fields, mask=_nulls(column))

    return convert


def _compile_list(source: pa.ListType, target: pa.ListType, name: str, absent: _Absent) -> Convert | None:
    inner = _compile(source.value_type, target.value_type, f"{name}.element", absent)
    if inner is None and source == target:
        return None

    def convert(column: pa.ListArray) -> pa.ListArray:
        offsets, (values,) = _unsliced(column, (column.values,))
        return pa.ListArray.from_arrays(offsets, (inner or _same)(values), type=target, mask=_nulls(column))

    return convert


def _compile_map(source: pa.MapType, target: pa.MapType, name: str, absent: _Absent) -> Convert | None:
    key = _compile(source.key_type, target.key_type, f"{name}.key", absent)
    value = _compile(source.item_type, target.item_type, f"{name}.value", absent)
    if key is None and value is None and source == target:
        return None

    def convert(column: pa.MapArray) -> pa.MapArray:
        offsets, (keys, items) = _unsliced(column, (column.keys, column.items))
        return pa.MapArray.from_arrays(
            offsets, (key or _same)(keys), (value or _same)(items), type=target, mask=_nulls(column)
        )

    return convert


def _unsliced(
    column: pa.ListArray | pa.LargeListArray | pa.MapArray, children: Iterable[pa.Array]
) -> tuple[pa.Int32Array, list[pa.Array]]:
    """A slice holds all children."""
    offsets = column.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    rebased = pc.subtract(offsets, offsets[0]).cast(pa.int32())
    return rebased, [child.slice(first, last - first) for child in children]


def _nulls(column: pa.Array) -> pa.BooleanArray | None:
    return column.is_null() if column.null_count else None


def _same(column: pa.Array) -> pa.Array:
    return column


def _expect(fits: bool, source: pa.DataType, target: pa.DataType, name: str) -> None:
    if not fits:
        raise ReplayError(
            "a column of the file doesn't have the type its rows were written with: restore the file from a snapshot "
            "before the rewrite",
            column=name,
            found=str(source),
            written=str(target),
        )
