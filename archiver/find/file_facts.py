"""Rules out data files by manifests, for all files at once."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, FixedType, IntegerType, LongType, StringType

from archiver.archive import file_columns
from archiver.find.index_facts import IndexFacts
from archiver.find.report import BY_COLUMN, BY_INDEX, BY_KEY, BY_POSITION, BY_RETIREMENT, BY_TIME, BY_VALUES
from archiver.find.value_facts import Absent, ValueFacts, needs_of
from archiver.records.column_answers import has_column, is_comparison
from archiver.records.possible import Leaf, leaves_of, may_hold
from archiver.records.table_columns import TableColumn
from archiver.records.where import Mask, Where
from archiver.records.where_syntax import BytesAre, ColumnIs, Comparison, Match, NullTest, NumberIs
from schema_mapping.columns.ledger import LedgerState
from schema_mapping.row import RowMapping, row_mapping_from_text

Numbers = npt.NDArray[np.int64]
_FAR: Final = sys.maxsize
_BY_BOUNDS: Final = ("partition", "offset", "time", "key", "column")
_TEXTS: Final = (StringType, BinaryType, FixedType)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """`key_id` is the column of raw keys; `versions` are the mappings of the `ledger`."""

    schema: Schema
    columns: Mapping[ColumnIs, TableColumn]
    key_id: int | None
    versions: tuple[RowMapping, ...]
    ledger: LedgerState | None = None

    @classmethod
    def of(
        cls, schema: Schema, columns: Mapping[ColumnIs, TableColumn], key_id: int | None, ledger: LedgerState | None
    ) -> FileFacts:
        versions = () if ledger is None else tuple(row_mapping_from_text(it.mapping) for it in ledger.versions)
        return cls(schema=schema, columns=columns, key_id=key_id, versions=versions, ledger=ledger)

    @property
    def bounded(self) -> frozenset[int]:
        """Scalars outside of lists and maps."""
        ids = set() if self.key_id is None else {self.key_id}
        for column in self.columns.values():
            ids |= {column.field_id, *column.former, *filter(None, [column.errors])}
        return frozenset(identifier for identifier in ids if _is_scalar(self.schema, identifier))

    def possible(
        self,
        where: Where,
        files: pa.Table,
        first_offsets: Mapping[int, int],
        absent: Absent,
        index: IndexFacts | None = None,
    ) -> tuple[npt.NDArray[np.int64], Counter[str]]:
        """Return indexes of files that may have matches, and the count ruled out by reason.

        `absent` and `index` are used at most once, for the remaining files.
        """
        left = np.arange(files.num_rows)
        ruled_out: Counter[str] = Counter()
        judges: Iterable[tuple[str, Callable[[pa.Table], Mask]]] = (
            (BY_RETIREMENT, lambda rows: _kept(rows, first_offsets)),
            (BY_POSITION, lambda rows: self._may(where, rows, ("partition", "offset"))),
            (BY_TIME, lambda rows: self._may(where, rows, ("partition", "offset", "time"))),
            (BY_KEY, lambda rows: self._may(where, rows, ("partition", "offset", "time", "key"))),
            (BY_COLUMN, lambda rows: self._may(where, rows, _BY_BOUNDS)),
            (BY_VALUES, lambda rows: self._may_by_values(where, rows, absent)),
            (BY_INDEX, lambda rows: self._may_by_index(where, rows, index)),
        )
        for reason, judge in judges:
            if len(left):
                kept = judge(files.take(pa.array(left)))
                ruled_out[reason] = len(left) - int(kept.sum())
                left = left[kept]
        return left, +ruled_out

    def _may(self, where: Where, files: pa.Table, by: tuple[str, ...]) -> Mask:
        return may_hold(where.condition, lambda leaf: self._judge(leaf, files, by))

    def _may_by_values(self, where: Where, files: pa.Table, absent: Absent) -> Mask:
        needs = {leaf: needs_of(leaf, self.key_id, self.columns) for leaf in leaves_of(where.condition)}
        facts = ValueFacts.of([*needs.values()], files[file_columns.PATH].to_pylist(), absent)

        def judge(leaf: Leaf) -> Mask:
            possible = facts.possible(needs.get(leaf, ()))  # negated numbers are judged by their opposites
            if isinstance(leaf, ColumnIs):
                possible |= ~self._speaks(self.columns[leaf], files)
            return self._judge(leaf, files, _BY_BOUNDS) & possible

        return may_hold(where.condition, judge)

    def _may_by_index(self, where: Where, files: pa.Table, index: IndexFacts | None) -> Mask:
        if index is None or not index.terms:
            return np.ones(files.num_rows, np.bool_)
        index.look_up(files[file_columns.PATH].to_pylist())
        return may_hold(
            where.condition, lambda leaf: self._judge(leaf, files, _BY_BOUNDS) & index.files_with(leaf, files)
        )

    def _judge(self, leaf: Leaf, files: pa.Table, by: tuple[str, ...]) -> Mask:
        match leaf:
            case NumberIs("time", comparison, value) if "time" in by:
                high = _numbers(files[file_columns.LATEST], _FAR)
                return _numbers_may_be(comparison, value, np.full(files.num_rows, -_FAR), high)
            case NumberIs("partition" | "offset" as field, comparison, value):
                names = file_columns.BOUNDS[field]
                low, high = _numbers(files[names[0]], -_FAR), _numbers(files[names[1]], _FAR)
                return _numbers_may_be(comparison, value, low, high)
            case BytesAre("key") if "key" in by and self.key_id is not None and self.key_id in self.bounded:
                return _bytes_may_match(leaf, files, self.key_id)
            case NullTest("key") if "key" in by and self.key_id is not None and self.key_id in self.bounded:
                return np.not_equal(_numbers(files[file_columns.nulls_of(self.key_id)], _FAR), 0)
            case ColumnIs() if "column" in by:
                return self._column_may_be(self.columns[leaf], files)
            case _:
                return np.ones(files.num_rows, np.bool_)

    def _column_may_be(self, column: TableColumn, files: pa.Table) -> Mask:
        speaks = self._speaks(column, files)
        if not speaks.any():
            return ~speaks
        rows = _numbers(files[file_columns.ROWS], 0)
        is_null = _numbers(files[file_columns.nulls_of(column.field_id)], -1) == rows
        possible: Mask = np.logical_not(speaks & (is_null | self._is_outside(column, files)))
        return possible

    def _speaks(self, column: TableColumn, files: pa.Table) -> Mask:
        """Return files in which no row has the field's value elsewhere."""
        hidden = (*filter(None, [column.errors]), *column.former)
        is_told = bool(self.versions) and all(has_column(column, version) for version in self.versions)
        if not is_told or not self.bounded.issuperset((column.field_id, *hidden)):
            return np.zeros(files.num_rows, np.bool_)
        speaks, rows = np.ones(files.num_rows, np.bool_), _numbers(files[file_columns.ROWS], 0)
        for identifier in hidden:
            speaks = speaks & (_numbers(files[file_columns.nulls_of(identifier)], -1) == rows)
        return speaks

    def _is_outside(self, column: TableColumn, files: pa.Table) -> Mask:
        kind = self.schema.find_type(column.field_id)
        low, high = files[file_columns.low_of(column.field_id)], files[file_columns.high_of(column.field_id)]
        value, comparison = column.value, column.comparison
        if isinstance(kind, _TEXTS) and isinstance(value, str | bytes):
            return _are_bytes_outside(comparison, value.encode() if isinstance(value, str) else value, low, high)
        is_integer = isinstance(kind, IntegerType | LongType)
        if is_integer and isinstance(value, int) and not isinstance(value, bool) and is_comparison(comparison):
            return ~_numbers_may_be(comparison, value, _integers(low, -_FAR - 1), _integers(high, _FAR))
        return np.zeros(files.num_rows, np.bool_)


def _kept(files: pa.Table, first_offsets: Mapping[int, int]) -> Mask:
    kept = np.ones(files.num_rows, np.bool_)
    low, high = (_numbers(files[name], -1) for name in file_columns.BOUNDS["partition"])
    last = _numbers(files[file_columns.HIGH_OFFSET], _FAR)
    for partition, first in first_offsets.items():
        kept &= ~((low == partition) & (high == partition) & (last < first))
    return kept


def _numbers_may_be(comparison: Comparison, value: int, low: Numbers, high: Numbers) -> Mask:
    masks: dict[Comparison, Callable[[], Any]] = {
        "=": lambda: (low <= value) & (value <= high),
        "!=": lambda: ~((low == value) & (high == value)),
        "<": lambda: low < value,
        "<=": lambda: low <= value,
        ">": lambda: high > value,
        ">=": lambda: high >= value,
    }
    return np.asarray(masks[comparison](), np.bool_)


def _bytes_may_match(leaf: BytesAre, files: pa.Table, identifier: int) -> Mask:
    low, high = files[file_columns.low_of(identifier)], files[file_columns.high_of(identifier)]
    has_none = _numbers(files[file_columns.nulls_of(identifier)], -1) == _numbers(files[file_columns.ROWS], 0)
    possible: Mask = np.logical_not(_are_bytes_outside(leaf.comparison, leaf.value, low, high) | has_none)
    return possible


def _are_bytes_outside(
    comparison: Comparison | Match, octets: bytes, low: pa.ChunkedArray, high: pa.ChunkedArray
) -> Mask:
    """Bounds may be truncated."""
    value = pa.scalar(octets, pa.binary())
    is_below, is_above = _true(pc.less(high, value)), _true(pc.greater(low, value))
    match comparison:
        case "=":
            return is_below | is_above
        case "<":
            return _true(pc.greater_equal(low, value))
        case "<=":
            return is_above
        case ">" | ">=":
            return is_below
        case "starts with":
            return is_below | _true(pc.greater(pc.binary_slice(low, 0, len(octets)), value))
        case _:
            return np.zeros(len(low), np.bool_)


def _integers(bounds: pa.ChunkedArray, missing: int) -> Numbers:
    """A column promoted to long may have bounds of an int."""
    values = (missing if it is None else int.from_bytes(it, "little", signed=True) for it in bounds.to_pylist())
    return np.fromiter(values, np.int64, len(bounds))


def _numbers(column: pa.ChunkedArray, missing: int) -> Numbers:
    numbers: Numbers = pc.fill_null(column.cast(pa.int64()), missing).to_numpy()
    return numbers


def _true(answers: pa.ChunkedArray) -> Mask:
    mask: Mask = pc.fill_null(answers, fill_value=False).to_numpy()
    return np.asarray(mask, np.bool_)


def _is_scalar(schema: Schema, identifier: int) -> bool:
    try:
        schema.accessor_for_field(identifier)
        return schema.find_type(identifier).is_primitive
    except ValueError:
        return False
