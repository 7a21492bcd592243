"""The selected rows, and the files that may have any, by manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, StructType

from archiver.archive import file_columns as columns
from archiver.archive.table_files import TableFile, TableFiles
from archiver.storage.row_columns import field_id, list_values
from schema_mapping import names
from schema_mapping.columns.fixed import KEY_ID, VAL_ID
from schema_mapping.row import RowMapping

Mask: TypeAlias = npt.NDArray[np.bool_]

PARTS: Final = {names.KEY: KEY_ID, names.VAL: VAL_ID}


class Reach(StrEnum):
    """Rows with errors, also with unknown fields, or all of older versions."""

    ERRORS = "errors"
    UNRECOGNIZED = "unrecognized"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """Empty `codes` or `partitions` means all. Offsets are half-open."""

    reach: Reach = Reach.ERRORS
    codes: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    start_offset: int = 0
    end_offset: int = 2**63 - 1

    def candidates(self, files: TableFiles, ids: frozenset[int] | None) -> Iterator[TableFile]:
        """`ids` are the columns with non-nulls, None if unknown."""
        table = files.columns
        rows, lows, highs = table[columns.ROWS], table[columns.LOW_OFFSET], table[columns.HIGH_OFFSET]
        kept = ~_is_true(pc.or_(pc.less(highs, self.start_offset), pc.greater_equal(lows, self.end_offset)))
        if self.partitions:
            kept &= self._has_partition(table[columns.LOW_PARTITION], table[columns.HIGH_PARTITION])
        without = np.full(len(files), ids is not None)
        for identifier in ids or ():
            name = columns.nulls_of(identifier)
            without &= _is_true(pc.equal(table[name], rows)) if name in table.column_names else False
        return files.pick(np.flatnonzero(kept & ~without))

    def _has_partition(self, lows: pa.ChunkedArray, highs: pa.ChunkedArray) -> Mask:
        mask = np.zeros(len(lows), np.bool_)
        for partition in self.partitions:
            mask |= ~_is_true(pc.or_(pc.greater(lows, partition), pc.less(highs, partition)))
        return mask

    def rows(self, kafka: pa.StructArray) -> Mask:
        offsets = kafka.field(names.OFFSET).to_numpy()
        inside: Mask = (offsets >= self.start_offset) & (offsets < self.end_offset)
        if self.partitions:
            inside &= np.isin(kafka.field(names.PARTITION).to_numpy(), sorted(self.partitions))
        return inside

    def errors(self, codes: pa.StringArray) -> Mask:
        if not self.codes:
            return _mask(codes.is_valid())
        return _mask(pc.fill_null(pc.is_in(codes, value_set=pa.array(sorted(self.codes))), fill_value=False))


def aside_ids(today: RowMapping) -> frozenset[int]:
    """Return `__unrecognized__` columns of fields that get no columns on purpose."""
    return frozenset(
        identifier
        for mapping in (today.key, today.value)
        for identifier in set(unrecognized_ids(mapping.arrow_type)) - mapping.unknown_ids
    )


def table_ids(schema: Schema, reach: Reach, today: RowMapping) -> frozenset[int] | None:
    """Return columns that are null in rows that aren't poor; None if manifests can't show that."""
    if reach is Reach.ALL:
        return None
    parts = [field for field in schema.fields if field.field_id in PARTS.values()]
    errors = {
        field.field_id
        for part in parts
        if isinstance(part.field_type, StructType)
        for field in part.field_type.fields
        if field.name == names.ERR
    }
    if reach is Reach.ERRORS:
        return frozenset(errors)
    aside = aside_ids(today)
    unknown = {
        identifier: is_repeated
        for part in parts
        for identifier, is_repeated in _unrecognized_columns(part.field_type, is_repeated=False)
        if identifier not in aside
    }
    return None if any(unknown.values()) else frozenset(errors | unknown.keys())


def countable_ids(schema: Schema) -> frozenset[int]:
    return frozenset(
        identifier
        for part in schema.fields
        if part.field_id in PARTS.values()
        for identifier, is_repeated in _special_columns(part.field_type, (names.ERR, names.UNRECOGNIZED))
        if not is_repeated
    )


def unrecognized_ids(kind: pa.DataType | None) -> Iterator[int]:
    if kind is None:
        return
    fields: Iterable[pa.Field] = ()
    if pa.types.is_struct(kind):
        fields = kind
    elif pa.types.is_map(kind):
        fields = (kind.item_field,)
    elif (values := list_values(kind)) is not None:
        fields = (values,)
    for child in fields:
        identifier = field_id(child)
        if child.name == names.UNRECOGNIZED and identifier is not None:
            yield identifier
        yield from unrecognized_ids(child.type)


def _unrecognized_columns(kind: IcebergType, *, is_repeated: bool) -> Iterator[tuple[int, bool]]:
    return _special_columns(kind, (names.UNRECOGNIZED,), is_repeated=is_repeated)


def _special_columns(
    kind: IcebergType, wanted: tuple[str, ...], *, is_repeated: bool = False
) -> Iterator[tuple[int, bool]]:
    match kind:
        case StructType():
            for field in kind.fields:
                if field.name in wanted:
                    yield field.field_id, is_repeated
                yield from _special_columns(field.field_type, wanted, is_repeated=is_repeated)
        case ListType():
            yield from _special_columns(kind.element_type, wanted, is_repeated=True)
        case MapType():
            yield from _special_columns(kind.value_type, wanted, is_repeated=True)
        case _:
            return


def _is_true(answer: pa.ChunkedArray) -> Mask:
    return np.asarray(pc.fill_null(answer, fill_value=False).to_numpy(), np.bool_)


def _mask(column: pa.BooleanArray) -> Mask:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.bool_)
