"""The columns of decoded records (docs/record-batches.md), without conversions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.errors import CorruptBatch
from archiver.wire.transactions import AbortedTransaction

Int64Array = npt.NDArray[np.int64]

NO_TIMESTAMP: Final = -1
"""The timestamp of a record without a time, as producers write it."""

NO_TIME: Final = int(np.iinfo(np.int64).min)
"""Marks a missing time in `BatchIndex`."""

HEADER_TYPE: Final = pa.struct([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())])

RECORDS: Final = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("element", HEADER_TYPE, nullable=False)), nullable=False),
        pa.field("batch_start", pa.int64(), nullable=False),
        pa.field("batch_end", pa.int64(), nullable=False),
        pa.field("timestamp_type", pa.int32(), nullable=False),
        pa.field("append_timestamp", pa.int64()),
        pa.field("leader_epoch", pa.int32(), nullable=False),
        pa.field("producer_id", pa.int64(), nullable=False),
        pa.field("producer_epoch", pa.int32(), nullable=False),
        pa.field("base_sequence", pa.int32(), nullable=False),
        pa.field("attributes", pa.int32(), nullable=False),
    ]
)
"""Columns of decoded records. `timestamp` is the producer's time in ms, also on log-append topics (-1: none);
`timestamp_type` is -1 for none (format v0), 0 for create time, 1 for log-append time; `append_timestamp` is the batch's
max timestamp in ms on log-append topics and null elsewhere; `batch_start` and `batch_end` are the batch's first and
last offset, as its header has them. Formats v0 and v1 have no epochs, producers and sequences: -1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeLimits:
    """Bytes after decompression, together below 2 GiB (Arrow's 32-bit offsets).

    Decoding stops after `chunk`; a batch larger than `batch` is refused.
    """

    chunk: int = 32 << 20
    batch: int = 1 << 30

    def __post_init__(self) -> None:
        if self.chunk < 1 or self.batch < 1 or self.chunk + self.batch >= 1 << 31:
            raise ValueError(f"chunk and batch must be positive and below 2 GiB together, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchIndex:
    """One element per batch with rows, by offset. Times are in ms, or `NO_TIME`.

    `append_timestamp` is set on log-append topics. `median_timestamp` is the lower median. `bytes`: size on the wire.
    """

    base_offset: Int64Array
    last_offset: Int64Array
    first_row: Int64Array
    rows: Int64Array
    append_timestamp: Int64Array
    median_timestamp: Int64Array
    bytes: Int64Array

    def __len__(self) -> int:
        return len(self.base_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderEpochs:
    """Ascending start offsets, also of batches without rows."""

    base_offset: Int64Array
    epoch: Int64Array


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedBatches:
    """Records of [start_offset, next_offset), which may lie after the requested offsets.

    `DecodeLimits.chunk` may stop decoding after `consumed` bytes: decode the rest with `open_transactions` as aborted
    list. `error`: the next batch is corrupt. Missing offsets were compacted, aborted or control records. `complete`:
    the range has ended.
    """

    records: pa.RecordBatch
    batches: BatchIndex
    start_offset: int
    next_offset: int
    complete: bool
    consumed: int
    open_transactions: tuple[AbortedTransaction, ...]
    epochs: LeaderEpochs
    error: CorruptBatch | None = None
