"""Decodes Fetch responses to columns.

A range owns the batches whose base offset lies in it, so neighbouring ranges never share a record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.wire.batch_index import index_batches
from archiver.wire.batch_reader import BatchReader
from archiver.wire.columns import BatchIndex, DecodedBatches, DecodeLimits, LeaderEpochs
from archiver.wire.find_batches import find_batches
from archiver.wire.inflate import Inflater
from archiver.wire.transactions import AbortedTransaction, AbortedTransactions

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

    `aborted` is the response's list. `cut_head` also reads the records from `start_offset` on of a batch that starts
    earlier. Raises `CorruptBatch` with the base offset if a batch doesn't match its checksum, contradicts itself, or is
    larger than `limits.batch` decompressed.
    """
    octets = np.frombuffer(data, dtype=np.uint8)
    inflater = Inflater(limit=limits.batch)
    scan = find_batches(octets, end_offset, inflater)
    transactions = AbortedTransactions(aborted)
    reader = BatchReader(octets, scan.headers, transactions, inflater, limit=limits.batch, chunk=limits.chunk)
    reader.read(start_offset, cut_head)
    all_read = reader.done == len(scan.headers)
    if scan.error is not None and all_read:
        raise scan.error
    complete = reader.next_offset >= end_offset or (scan.next_range_seen and all_read)
    records, batches = _columns(reader, scan.headers)
    return DecodedBatches(
        records=records,
        batches=batches,
        start_offset=reader.start_offset,
        next_offset=max(reader.next_offset, end_offset) if complete else reader.next_offset,
        complete=complete,
        consumed=reader.consumed,
        open_transactions=transactions.remaining(),
        epochs=leader_epochs(scan.headers[: reader.done]),
    )


def leader_epochs(headers: npt.NDArray[Any]) -> LeaderEpochs:
    """Find the start offsets of leader epochs in batch headers."""
    epochs = headers["leader_epoch"].astype(np.int64)
    begins = np.flatnonzero(np.diff(np.maximum.accumulate(epochs), prepend=-1) > 0)
    return LeaderEpochs(base_offset=headers["base_offset"][begins], epoch=epochs[begins])


def _columns(reader: BatchReader, headers: npt.NDArray[Any]) -> tuple[pa.RecordBatch, BatchIndex]:
    output, timestamps, kept, first_row, rows, in_order = reader.finish()
    return pa.record_batch(output), index_batches(headers, kept, first_row, rows, in_order, timestamps)
