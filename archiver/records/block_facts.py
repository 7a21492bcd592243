"""Whether a condition can hold in a block, by the file's statistics and filters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from pyiceberg.schema import Schema

from archiver.archive.assemble import Mappings
from archiver.archive.file_columns import MICROS_PER_TIME_COLUMN
from archiver.records.column_answers import is_absent, speaks_for_all
from archiver.records.possible import Leaf, may_be, may_hold, may_match
from archiver.records.set_facts import is_in_sets, may_hold_by_sets, may_match_by_sets
from archiver.records.table_columns import TableColumn
from archiver.records.where import Mask, Where
from archiver.records.where_syntax import BytesAre, ColumnIs, NullTest, NumberIs
from archiver.storage.row_columns import LOG_APPEND_TIME, MICROS_PER_MILLI, NO_TIMESTAMP
from archiver.storage.segment import Block, SegmentReader
from archiver.storage.value_sets import is_listed_value
from schema_mapping import names
from schema_mapping.columns.fixed import (
    APPEND_TIMESTAMP_ID,
    EVENT_TIMESTAMP_ID,
    OFFSET_ID,
    PARTITION_ID,
    TIMESTAMP_TYPE_ID,
)

_TIME_IDS: Final = frozenset((*(identifier for identifier, _ in MICROS_PER_TIME_COLUMN), TIMESTAMP_TYPE_ID))
_BY_NUMBER: Final = {"partition": PARTITION_ID, "offset": OFFSET_ID}


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """`key_id` is None if keys aren't as archived."""

    reader: SegmentReader
    block: Block
    columns: Mapping[ColumnIs, TableColumn]
    mappings: Mappings
    key_id: int | None

    def by_statistics(self, where: Where) -> bool:
        return self._may(where, self._by_bounds)

    def by_sets(self, where: Where) -> bool:
        """Raises subclasses of StorageError."""
        return self._may(where, lambda leaf: self._by_bounds(leaf) and self._by_set(leaf))

    def by_filters(self, where: Where) -> bool:
        """Raises subclasses of StorageError."""
        return self._may(where, lambda leaf: self._by_bounds(leaf) and self._by_set(leaf) and self._by_filter(leaf))

    def offset_box(self) -> tuple[int, int, int, int]:
        bounds = (_integers(self.reader, self.block, identifier) for identifier in (PARTITION_ID, OFFSET_ID))
        partitions, offsets = (it or (-sys.maxsize, sys.maxsize) for it in bounds)
        return (*partitions, *offsets)

    def _may(self, where: Where, judge: Callable[[Leaf], bool]) -> bool:
        def mask(leaf: Leaf) -> Mask:
            return np.array([judge(leaf)])

        return bool(may_hold(where.condition, mask).any())

    def _by_bounds(self, leaf: Leaf) -> bool:
        match leaf:
            case NumberIs("time", comparison, value):
                return may_be(comparison, value, *time_bounds(self.reader, self.block))
            case NumberIs(field, comparison, value):
                bounds = _integers(self.reader, self.block, _BY_NUMBER[field])
                return bounds is None or may_be(comparison, value, *bounds)
            case BytesAre("key") | NullTest("key") if self.key_id is not None:
                return self._by_key(leaf, self.key_id)
            case ColumnIs():
                return not is_absent(self.columns[leaf], self.block, self.reader, self.mappings)
            case _:
                return True

    def _by_key(self, leaf: BytesAre | NullTest, identifier: int) -> bool:
        count = self.reader.set_counts(self.block, frozenset((identifier,))).get(identifier)
        if isinstance(leaf, NullTest):
            return count != self.block.rows
        low, high = self.reader.value_bounds(self.block, identifier) or (None, None)
        if isinstance(low, bytes) and isinstance(high, bytes):
            return may_match(leaf, low, high)
        return count != 0

    def _by_set(self, leaf: Leaf) -> bool:
        if not isinstance(leaf, ColumnIs):
            return not is_in_sets(leaf, self.key_id) or may_hold_by_sets(leaf, self.reader.value_sets, self.key_id)
        column = self.columns[leaf]
        if not is_listed_value(column.value):
            return True
        return may_match_by_sets(column, self.reader.value_sets) or not self._speaks(column)

    def _by_filter(self, leaf: Leaf) -> bool:
        match leaf:
            case BytesAre("key", "=", value) if self.key_id is not None:
                return self.reader.may_contain(self.block, self.key_id, value) is not False
            case ColumnIs():
                column = self.columns[leaf]
                constant = column.value
                if leaf.comparison != "=" or not isinstance(constant, str | bytes | int) or not self._speaks(column):
                    return True
                return self.reader.may_contain(self.block, column.field_id, constant) is not False
            case _:
                return True

    def _speaks(self, column: TableColumn) -> bool:
        return speaks_for_all(column, self.block, self.reader, self.mappings)


def time_bounds(reader: SegmentReader, block: Block) -> tuple[int, int]:
    """In ms, maybe negative; -1 for records without a timestamp."""
    counts = reader.set_counts(block, _TIME_IDS)
    high = NO_TIMESTAMP
    for identifier, unit in MICROS_PER_TIME_COLUMN:
        if counts.get(identifier) != 0:
            bounds = _integers(reader, block, identifier)
            high = max(high, sys.maxsize if bounds is None else -(-bounds[1] // unit))
    kinds = _integers(reader, block, TIMESTAMP_TYPE_ID) or (NO_TIMESTAMP, LOG_APPEND_TIME)
    by_append = kinds[0] == LOG_APPEND_TIME and counts.get(TIMESTAMP_TYPE_ID) == block.rows
    shown = [EVENT_TIMESTAMP_ID] * (not by_append) + [APPEND_TIMESTAMP_ID] * (kinds[1] >= LOG_APPEND_TIME)
    lows = [_integers(reader, block, identifier) for identifier in shown if counts.get(identifier) == block.rows]
    if len(lows) < len(shown):
        return -sys.maxsize, high
    return min(-sys.maxsize if low is None else low[0] // MICROS_PER_MILLI for low in lows), high


def _integers(reader: SegmentReader, block: Block, identifier: int) -> tuple[int, int] | None:
    low, high = reader.value_bounds(block, identifier) or (None, None)
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def raw_key_id(schema: Schema) -> int | None:
    try:
        return int(schema.find_field(f"{names.KEY}.{names.RAW}").field_id)
    except ValueError:
        return None
