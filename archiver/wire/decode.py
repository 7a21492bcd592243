"""Decodes Fetch responses. A range owns the batches whose base offset lies in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.errors import CorruptBatch
from archiver.wire.batch_index import index_batches
from archiver.wire.batch_reader import BatchReader
from archiver.wire.columns import BatchIndex, DecodedBatches, DecodeLimits, LeaderEpochs
from archiver.wire.find_batches import FoundBatches, find_batches
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
    keep_sound: bool = False,
) -> DecodedBatches:
    """Decode the batches that [start_offset, end_offset) owns.

    `cut_head`: also the rest of a batch that starts earlier. Raises `CorruptBatch` with the base offset if a batch is
    invalid or exceeds `limits.batch`; `keep_sound` returns earlier batches with it.
    """
    octets = np.frombuffer(data, dtype=np.uint8)
    inflater = Inflater(limit=limits.batch)
    scan = find_batches(octets, end_offset, inflater)
    transactions = tuple(aborted)

    def read(headers: npt.NDArray[Any]) -> tuple[BatchReader, AbortedTransactions]:
        open_ones = AbortedTransactions(transactions)
        made = BatchReader(octets, headers, open_ones, inflater, limit=limits.batch, chunk=limits.chunk)
        try:
            made.read(start_offset, cut_head)
        except CorruptBatch as error:
            if not (keep_sound and made.done):
                raise
            raise _Unsound(error, made.done) from error
        return made, open_ones

    headers, error = (_before(scan) if keep_sound else scan.headers), scan.error
    if not len(headers) and len(scan.headers):
        read(scan.headers)  # if the first batch is corrupt, its error says more than the batch after it
    try:
        reader, left = read(headers)
    except _Unsound as unsound:
        # a batch may have been read in part: its rows are in the columns of the first reader
        headers, error = headers[: unsound.sound], unsound.error
        reader, left = read(headers)
    all_read = reader.done == len(headers)
    is_over = reader.next_offset >= end_offset
    if error is not None and all_read and not (keep_sound and (is_over or len(headers))):
        raise error
    complete = is_over or (error is None and scan.next_range_seen and all_read)
    records, batches = _columns(reader, headers)
    return DecodedBatches(
        records=records,
        batches=batches,
        start_offset=reader.start_offset,
        next_offset=max(reader.next_offset, end_offset) if complete else reader.next_offset,
        complete=complete,
        consumed=reader.consumed,
        open_transactions=left.remaining(),
        epochs=leader_epochs(headers[: reader.done]),
        error=error if all_read and not complete else None,
    )


class _Unsound(Exception):
    """Only the first `sound` batches can be read."""

    def __init__(self, error: CorruptBatch, sound: int) -> None:
        super().__init__(error, sound)
        self.error = error
        self.sound = sound


def _before(scan: FoundBatches) -> npt.NDArray[Any]:
    """Return batches that are surely right.

    No checksum covers base offsets: if they don't rise, either batch may be wrong.
    """
    error, headers = scan.error, scan.headers
    if error is None or not len(headers) or error.context["base_offset"] > headers["last_offset"][-1]:
        return headers
    return headers[:-1]


def leader_epochs(headers: npt.NDArray[Any]) -> LeaderEpochs:
    epochs = headers["leader_epoch"].astype(np.int64)
    begins = np.flatnonzero(np.diff(np.maximum.accumulate(epochs), prepend=-1) > 0)
    return LeaderEpochs(base_offset=headers["base_offset"][begins], epoch=epochs[begins])


def _columns(reader: BatchReader, headers: npt.NDArray[Any]) -> tuple[pa.RecordBatch, BatchIndex]:
    output, timestamps, kept, first_row, rows, in_order = reader.finish()
    return pa.record_batch(output), index_batches(headers, kept, first_row, rows, in_order, timestamps)
