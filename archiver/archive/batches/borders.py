"""Finds the borders of Kafka batches among archived rows.

Rows without valid borders form batches of a sensible size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.archive.batches.wire_columns import UNKNOWN
from archiver.archive.offset_order import offsets_of
from archiver.wire.columns import NO_TIME, Int64Array
from schema_mapping.errors import ContextError

Flags = npt.NDArray[np.bool_]

_MOST_DELTA: Final = 2**31 - 1
"""The greatest distance from a batch's first to its last offset."""
_SPAN_BITS: Final = 30
_SEQUENCES: Final = 1 << 31
_ROW_BYTES: Final = 16
"""The approximate bytes of a record on the wire beside its key, value and headers."""
_HEADER_FIELDS: Final = (
    "batch_start",
    "batch_end",
    "timestamp_type",
    "leader_epoch",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "attributes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSizes:
    """Limits in bytes before compression; `unknown` is for rows without borders."""

    unknown: int = 1 << 20
    largest: int = 64 << 20

    def __post_init__(self) -> None:
        if not 1 <= self.unknown <= self.largest <= 1 << 30:
            raise ValueError(f"expected 1 <= unknown <= largest <= 1 GiB, got {self}")


def whole_batches(
    pieces: Iterable[pa.RecordBatch], *, end: int, sizes: BatchSizes, spans_gaps: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield `pieces` in whole batches, with valid `batch_start` and `batch_end`.

    `pieces` are all records up to `end`, exclusive; their error comes after them. With `spans_gaps` a batch extends to
    the next one.
    """
    borders = _Borders(spans_gaps=spans_gaps)
    pending: list[pa.RecordBatch] = []
    held_bytes = 0
    try:
        for piece in pieces:
            possible = _without_impossible(piece)
            first_rows = _first_rows(possible, sizes)
            if pending and not (_continues(pending[-1], possible) and held_bytes <= sizes.largest):
                yield borders.apply(_joined(pending), np.zeros(1, np.int64), follower=possible)
                pending = []
            if pending and len(first_rows) > 1:
                pending.append(possible.slice(0, int(first_rows[1])))
                yield borders.apply(
                    _joined(pending), np.zeros(1, np.int64), follower=possible.slice(int(first_rows[1]), 1)
                )
                pending, first_rows = [], first_rows[1:]
            start, last = int(first_rows[0]), int(first_rows[-1])
            if start < last:
                rows = possible.slice(start, last - start)
                yield borders.apply(rows, first_rows[:-1] - start, follower=possible.slice(last, 1))
            # while the whole piece belongs to the held batch, the batch continues
            pending = [*pending, possible.slice(last)] if pending else [possible.slice(last)]
            held_bytes = sum(part.nbytes for part in pending)
            offset = int(offsets_of(possible)[-1])
            if not spans_gaps and offset == _numbers(possible, "batch_end")[-1]:  # the batch is complete
                yield borders.apply(_joined(pending), np.zeros(1, np.int64), end=offset + 1)
                pending = []
    except ContextError:
        if pending:  # the rest of this batch may be in what couldn't be read
            yield borders.apply(_joined(pending), np.zeros(1, np.int64), end=int(offsets_of(pending[-1])[-1]) + 1)
        raise
    if pending:
        yield borders.apply(_joined(pending), np.zeros(1, np.int64), end=end)


class _Borders:
    def __init__(self, *, spans_gaps: bool) -> None:
        self._spans_gaps = spans_gaps
        self._floor = -1

    def apply(
        self,
        rows: pa.RecordBatch,
        first_rows: Int64Array,
        *,
        follower: pa.RecordBatch | None = None,
        end: int = 0,
    ) -> pa.RecordBatch:
        offsets, starts, ends = offsets_of(rows), _numbers(rows, "batch_start"), _numbers(rows, "batch_end")
        last_rows = np.append(first_rows[1:], len(offsets)) - 1
        firsts, lasts, stated = offsets[first_rows], offsets[last_rows], starts[first_rows]
        floors = np.append(self._floor, lasts[:-1])
        bases = np.where(stated == UNKNOWN, firsts, np.maximum(stated, floors + 1))
        following = end if follower is None else _base_of(follower, int(lasts[-1]))
        ceilings = np.append(bases[1:], following) - 1
        ceilings = np.minimum(ceilings, bases + _MOST_DELTA)
        lasts = ceilings if self._spans_gaps else np.minimum(np.maximum(ends[first_rows], lasts), ceilings)
        self._floor = int(lasts[-1])
        counts = last_rows - first_rows + 1
        rows = _with(rows, "batch_start", bases, counts)
        rows = _with(rows, "batch_end", lasts, counts)
        return _with(rows, "base_sequence", _sequences(rows, first_rows, stated, bases), counts)


def _base_of(follower: pa.RecordBatch, floor: int) -> int:
    stated, offset = int(_numbers(follower, "batch_start")[0]), int(offsets_of(follower)[0])
    return offset if stated == UNKNOWN else max(stated, floor + 1)


def _sequences(rows: pa.RecordBatch, first_rows: Int64Array, stated: Int64Array, bases: Int64Array) -> Int64Array:
    """Each record keeps its sequence. Sequences wrap after 2^31 - 1."""
    sequences = _numbers(rows, "base_sequence")[first_rows].astype(np.int64)
    moved = (sequences + bases - stated) % _SEQUENCES
    return np.where((sequences < 0) | (stated == UNKNOWN), UNKNOWN, moved)


def _without_impossible(rows: pa.RecordBatch) -> pa.RecordBatch:
    offsets, starts, ends = offsets_of(rows), _numbers(rows, "batch_start"), _numbers(rows, "batch_end")
    possible = (starts >= 0) & (starts <= offsets) & (offsets <= ends) & (ends - starts <= _MOST_DELTA)
    if possible.all():
        return rows
    rows = _replaced(rows, "batch_start", np.where(possible, starts, UNKNOWN))
    return _replaced(rows, "batch_end", np.where(possible, ends, UNKNOWN))


def _first_rows(rows: pa.RecordBatch, sizes: BatchSizes) -> Int64Array:
    begins = np.zeros(rows.num_rows, np.bool_)
    begins[0] = True
    for column in _header_columns(rows):
        begins[1:] |= column[1:] != column[:-1]
    unknown = _numbers(rows, "batch_start") == UNKNOWN
    if unknown.any() or rows.nbytes > sizes.largest:
        _cut_large(rows, begins, unknown, sizes)
    return np.flatnonzero(begins)


def _cut_large(rows: pa.RecordBatch, begins: Flags, unknown: Flags, sizes: BatchSizes) -> None:
    before = np.append(0, np.cumsum(_row_bytes(rows)))[:-1]
    since = before - np.maximum.accumulate(np.where(begins, before, 0))
    part = since // np.where(unknown, sizes.unknown, sizes.largest)
    span = np.where(unknown, offsets_of(rows) >> _SPAN_BITS, 0)
    begins[1:] |= (part[1:] != part[:-1]) | (span[1:] != span[:-1])


def _row_bytes(rows: pa.RecordBatch) -> Int64Array:
    headers = rows.column("headers")
    entries = headers.flatten()
    ends = headers.offsets.to_numpy().astype(np.int64)
    inside = np.append(0, np.cumsum(_lengths(entries.field(0)) + _lengths(entries.field(1)) + 2))
    of_headers = inside[ends[1:] - ends[0]] - inside[ends[:-1] - ends[0]]
    row_bytes: Int64Array = _lengths(rows.column("key")) + _lengths(rows.column("value")) + of_headers + _ROW_BYTES
    return row_bytes


def _lengths(column: pa.BinaryArray) -> Int64Array:
    ends = np.frombuffer(column.buffers()[1] or b"\0\0\0\0", np.int32)[column.offset : column.offset + len(column) + 1]
    return np.diff(ends).astype(np.int64)


def _continues(held: pa.RecordBatch, piece: pa.RecordBatch) -> bool:
    if _numbers(piece, "batch_start")[0] == UNKNOWN:
        return False
    ours, theirs = _header_columns(held.slice(held.num_rows - 1)), _header_columns(piece.slice(0, 1))
    return all(last[0] == first[0] for last, first in zip(ours, theirs, strict=True))


def _header_columns(rows: pa.RecordBatch) -> Iterator[npt.NDArray[np.signedinteger]]:
    for name in _HEADER_FIELDS:
        yield _numbers(rows, name)
    appended = rows.column("append_timestamp")
    if appended.null_count < len(appended):
        yield appended.fill_null(NO_TIME).to_numpy()
    else:
        yield np.full(len(appended), NO_TIME, np.int64)


def _joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)


def _numbers(rows: pa.RecordBatch, name: str) -> npt.NDArray[np.signedinteger]:
    column: npt.NDArray[np.signedinteger] = rows.column(name).to_numpy()
    return column


def _with(rows: pa.RecordBatch, name: str, values: Int64Array, counts: Int64Array) -> pa.RecordBatch:
    fresh = np.repeat(values, counts)
    return rows if np.array_equal(fresh, _numbers(rows, name)) else _replaced(rows, name, fresh)


def _replaced(rows: pa.RecordBatch, name: str, values: Int64Array) -> pa.RecordBatch:
    index = rows.schema.get_field_index(name)
    kind = rows.schema.field(index)
    return rows.set_column(index, kind, pa.array(values, kind.type))
