"""The columns of decoded records, and the arguments and results of decoding.

One row of `RECORDS` is one record as its batch has it: nothing is rounded, clamped or converted. docs/record-batches.md
says what each column holds, docs/concepts.md what becomes of it in the table.
"""

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
"""Means in `BatchIndex` that a batch has no such time."""

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
    """Limits of decoding, in bytes after decompression.

    After `chunk` bytes, decoding begins no further batch and leaves the rest to the next call. It refuses a batch that
    is larger than `batch`. Both together must stay below 2 GiB, the limit of Arrow's 32-bit offsets.
    """

    chunk: int = 32 << 20
    batch: int = 1 << 30

    def __post_init__(self) -> None:
        if self.chunk < 1 or self.batch < 1 or self.chunk + self.batch >= 1 << 31:
            raise ValueError(f"chunk and batch must be positive and below 2 GiB together, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchIndex:
    """The batches of `DecodedBatches.records`: one element for each batch with rows, in offset order.

    `first_row` and `rows` say where a batch lies in the records. Times are in ms, `NO_TIME` if there is none.
    `append_timestamp` is set on log-append topics. `median_timestamp` is the lower median of the producers' times in
    the batch, without the records that have no time. `bytes` is the batch's size on the wire.
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
    """Where leader epochs begin, in rising order. Batches without rows count too.

    There is one element for each batch whose epoch is higher than the epochs of all batches before it. Batches without
    an epoch have no element.
    """

    base_offset: Int64Array
    epoch: Int64Array


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedBatches:
    """The decoded records of one piece of a log. It covers exactly the offsets [start_offset, next_offset).

    Offsets in between without a row were compacted away, aborted, or control records. `start_offset` comes after the
    offset asked for if a batch of the range before reaches into this one. `next_offset` comes after the end asked for
    if the last batch reaches over it. `complete` says that nothing of the range is left: its end was reached, or a
    batch of the next range was seen.

    `consumed` bytes of the input were used. If `DecodeLimits.chunk` stopped decoding early, decode the rest of the
    input with `open_transactions` as its aborted list. `epochs` come from all batches that were read, with or without
    rows. `error` is the error of the batch that follows, if it is known to be corrupt.
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
