"""The columns a record batch decodes to, and the plain values that go in and come out of decoding.

One row of `RECORDS` is one record as its batch held it: nothing is rounded, clamped or converted here. Section 3 of the
table specification says what becomes of each column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64Array = npt.NDArray[np.int64]

NO_TIMESTAMP: Final = -1
"""What producers write where a record has no time."""

NO_TIME: Final = int(np.iinfo(np.int64).min)
"""Stands in `BatchIndex` where a batch has no such time."""

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
`timestamp_type` -1 is none (format v0), 0 create time, 1 log-append time; `append_timestamp` is the batch's max
timestamp in ms on log-append topics and null elsewhere; `batch_start` and `batch_end` are the batch's first and last
offset, as its header has them. Formats v0 and v1 have no epochs, producers and sequences: -1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedTransaction:
    """A transaction that a Fetch response declares aborted: its producer, and the first offset it wrote."""

    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeLimits:
    """How far decoding may go before it stops or refuses, in bytes after decompression.

    `chunk`: no further batch is begun once so many bytes were decoded; the rest is left to the next call.
    `batch`: a batch that is larger than this decompressed is refused. The two together stay below 2 GiB, where Arrow's
    32-bit offsets end.
    """

    chunk: int = 32 << 20
    batch: int = 1 << 30

    def __post_init__(self) -> None:
        if self.chunk < 1 or self.batch < 1 or self.chunk + self.batch >= 1 << 31:
            raise ValueError(f"chunk and batch must be positive and below 2 GiB together, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchIndex:
    """The batches that records of `DecodedBatches.records` came from, one element for each, in offset order.

    `first_row` and `rows` place a batch in the records. Times are in ms, `NO_TIME` where there is none:
    `append_timestamp` is set on log-append topics, `median_timestamp` is the lower median of the producers' times in
    the batch, records without time left out. `bytes` is the batch's size on the wire.
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
    """Where leader epochs begin among batches, whether these gave records or not; epochs and offsets rise.

    An element for each batch whose epoch is above those of all batches before it; batches without an epoch have none.
    """

    base_offset: Int64Array
    epoch: Int64Array


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedBatches:
    """What one piece of a partition's log decoded to; it accounts for exactly the offsets [start_offset, next_offset).

    Offsets in that range without a row were compacted away, aborted, or control records. `start_offset` lies behind the
    offset asked for where a batch of the range before reaches into this one; `next_offset` lies behind the end asked
    for where the last batch reaches over it. `complete` says that nothing of the range is left: its end was reached, or
    a batch was seen that belongs to the next one.
    `consumed` bytes of the input were used; where `DecodeLimits.chunk` stopped the work before the end of the input,
    decode the rest of it with `open_transactions` as its aborted list.
    `epochs` are those of all batches read, control batches and others without rows among them.
    """

    records: pa.RecordBatch
    batches: BatchIndex
    start_offset: int
    next_offset: int
    complete: bool
    consumed: int
    open_transactions: tuple[AbortedTransaction, ...]
    epochs: LeaderEpochs
