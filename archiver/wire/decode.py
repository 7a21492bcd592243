"""Fetch responses to columns: which batches count, are they whole, and what records they hold.

A range owns the batches whose base offset lies in it, and no batch is cut, so neighbouring ranges never share a record.
Control batches, aborted transactions and batches without records leave no rows, but their offsets are accounted for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.wire.batch_index import index_batches
from archiver.wire.batch_reader import BatchReader
from archiver.wire.columns import AbortedTransaction, BatchIndex, DecodedBatches, DecodeLimits, LeaderEpochs
from archiver.wire.inflate import Inflater
from archiver.wire.scan import scan
from archiver.wire.transactions import AbortedTransactions

_DEFAULT_LIMITS: Final = DecodeLimits()


def decode_batches(
    data: bytes | bytearray | memoryview,
    *,
    aborted: Iterable[AbortedTransaction] = (),
    start_offset: int,
    end_offset: int,
    cut_head: bool = False,
    limits: DecodeLimits = _DEFAULT_LIMITS,
) -> DecodedBatches:
    """Decode the batches of a Fetch response that the range [start_offset, end_offset) owns.

    `aborted` is the response's own list. With `cut_head` a batch that straddles `start_offset` is read too, its records
    from `start_offset` on: right only where nothing archives the offsets before, as at the start of a log.
    A batch that `data` holds only a part of ends the work; `next_offset` tells where the next fetch goes on.

    Raises `CorruptBatch` with the base offset where bytes contradict their checksum or themselves, or are larger than
    `limits.batch` decompressed.
    """
    octets = np.frombuffer(data, dtype=np.uint8)
    inflater = Inflater(limit=limits.batch)
    found = scan(octets, end_offset, inflater)
    transactions = AbortedTransactions(aborted)
    reader = BatchReader(octets, found.headers, transactions, inflater, limit=limits.batch, chunk=limits.chunk)
    reader.read(start_offset, cut_head)
    all_read = reader.done == len(found.headers)
    if found.error is not None and all_read:
        raise found.error
    complete = reader.next_offset >= end_offset or (found.next_range_seen and all_read)
    records, batches = _columns(reader, found.headers)
    return DecodedBatches(
        records=records,
        batches=batches,
        start_offset=reader.start_offset,
        next_offset=max(reader.next_offset, end_offset) if complete else reader.next_offset,
        complete=complete,
        consumed=reader.consumed,
        open_transactions=transactions.remaining(),
        epochs=leader_epochs(found.headers[: reader.done]),
    )


def leader_epochs(headers: npt.NDArray[Any]) -> LeaderEpochs:
    """Where leader epochs begin among batches, by their headers."""
    epochs = headers["leader_epoch"].astype(np.int64)
    begins = np.flatnonzero(np.diff(np.maximum.accumulate(epochs), prepend=-1) > 0)
    return LeaderEpochs(base_offset=headers["base_offset"][begins], epoch=epochs[begins])


def _columns(reader: BatchReader, headers: npt.NDArray[Any]) -> tuple[pa.RecordBatch, BatchIndex]:
    """The rows of all batches read, and the index of those that gave any."""
    output, timestamps, kept, first_row, rows, in_order = reader.finish()
    return pa.record_batch(output), index_batches(headers, kept, first_row, rows, in_order, timestamps)
