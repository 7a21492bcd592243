"""Fetch responses to columns: which batches count, are they whole, and what records they hold.

A range owns the batches whose base offset lies in it, and no batch is cut, so neighbouring ranges never share a record.
Control batches, aborted transactions and batches without records leave no rows, but their offsets are accounted for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.errors import CorruptBatch
from archiver.wire import attributes
from archiver.wire.batch_header import CHECKSUM_START, HEADER_BYTES, control_type, scan
from archiver.wire.batch_index import KeptBatch, index_batches
from archiver.wire.checksum import crc32c
from archiver.wire.columns import RECORDS, AbortedTransaction, BatchIndex, DecodedBatches, DecodeLimits
from archiver.wire.compression import InflateError, Inflater
from archiver.wire.record_batch import RecordBuilder
from archiver.wire.transactions import AbortedTransactions

_ROW_COST: Final = 80
"""Bytes that a record takes in the columns beside its key, value and headers."""

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
    `limits.batch` decompressed; `UnsupportedBatch` for message formats before v2.
    """
    octets = np.frombuffer(data, dtype=np.uint8)
    headers, next_range_seen, error = scan(octets, end_offset)
    reader = _BatchReader(octets, headers, AbortedTransactions(aborted), limits)
    covered_from = next_offset = start_offset
    done = consumed = 0
    for header in map(_Header._make, headers.tolist()):
        if reader.cost >= limits.chunk:
            break
        owned = header.base_offset >= start_offset or cut_head
        reader.read(done, header, keep_from=start_offset if owned else header.last_offset + 1)
        done += 1
        consumed = header.position + header.size
        if header.last_offset >= start_offset:
            next_offset = header.last_offset + 1
            covered_from = covered_from if owned else next_offset
    all_read = done == len(headers)
    if error is not None and all_read:
        raise error
    complete = next_offset >= end_offset or (next_range_seen and all_read)
    records, batches = reader.finish()
    return DecodedBatches(
        records=records,
        batches=batches,
        start_offset=covered_from,
        next_offset=max(next_offset, end_offset) if complete else next_offset,
        complete=complete,
        consumed=consumed,
        open_transactions=reader.aborted.remaining(),
    )


class _Header(NamedTuple):
    """One element of `HEADER`, field for field, as Python's own numbers."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    crc: int
    leader_epoch: int
    attributes: int
    producer_epoch: int
    base_sequence: int
    record_count: int


class _BatchReader:
    """Reads one batch after the other into one set of columns; `cost` is what they take, in bytes."""

    __slots__ = ("_builder", "_headers", "_inflater", "_kept", "_limit", "_octets", "aborted", "cost")

    def __init__(
        self,
        octets: npt.NDArray[np.uint8],
        headers: npt.NDArray[Any],
        aborted: AbortedTransactions,
        limits: DecodeLimits,
    ) -> None:
        self._octets = octets
        self._headers = headers
        self._limit = limits.batch
        self._inflater = Inflater(limit=limits.batch)
        self._builder = RecordBuilder()
        self._kept: list[KeptBatch] = []
        self.aborted = aborted
        self.cost = 0

    def read(self, index: int, header: _Header, *, keep_from: int) -> None:
        """Read a batch: its records from `keep_from` on if it counts, its part in transactions in any case."""
        batch = self._octets[header.position : header.position + header.size]
        if crc32c(batch[CHECKSUM_START:]) != header.crc:
            raise CorruptBatch(
                "A batch does not match its checksum", base_offset=header.base_offset, position=header.position
            )
        self.aborted.reach(header.last_offset)
        if header.attributes & attributes.CONTROL:
            if self.aborted and control_type(batch[HEADER_BYTES:]) == attributes.ABORT_MARKER:
                self.aborted.end(header.producer_id)
        elif header.attributes & attributes.TRANSACTIONAL and self.aborted.includes(header.producer_id):
            pass
        elif keep_from <= header.last_offset:
            self._append(index, header, batch[HEADER_BYTES:].data, keep_from)

    def _append(self, index: int, header: _Header, payload: memoryview, keep_from: int) -> None:
        codec = header.attributes & attributes.CODEC
        try:
            records = self._inflater.inflate(codec, payload)
        except InflateError as error:
            raise CorruptBatch(
                f"The compressed records of a batch are bad: {error}", base_offset=header.base_offset, codec=codec
            ) from error
        cost = len(records) + _ROW_COST * header.record_count
        if cost > self._limit:
            raise CorruptBatch(
                f"A batch takes {cost} bytes decoded, the limit is {self._limit}", base_offset=header.base_offset
            )
        first_row = self._builder.rows
        in_order = self._builder.append(records, self._headers, index, keep_from)
        self.cost += cost
        if rows := self._builder.rows - first_row:
            self._kept.append(KeptBatch(index=index, first_row=first_row, rows=rows, in_order=in_order))

    def finish(self) -> tuple[pa.RecordBatch, BatchIndex]:
        """Give the rows of all batches read, and the index of those that gave any."""
        offset, timestamp, key, value, record_headers = self._builder.finish()
        headers = self._headers[[batch.index for batch in self._kept]]
        index = index_batches(self._kept, headers, timestamp.to_numpy(zero_copy_only=True))
        log_append = headers["attributes"] & attributes.LOG_APPEND_TIME != 0

        def rows(
            values: npt.NDArray[Any], dtype: npt.DTypeLike, nulls: npt.NDArray[np.bool_] | None = None
        ) -> pa.Array:
            mask = None if nulls is None else np.repeat(nulls, index.rows)
            return pa.array(np.repeat(values.astype(dtype), index.rows), mask=mask)

        columns = {
            "offset": offset,
            "timestamp": timestamp,
            "key": key,
            "value": value,
            "headers": record_headers,
            "batch_start": rows(headers["base_offset"], np.int64),
            "batch_end": rows(headers["last_offset"], np.int64),
            "timestamp_type": rows(log_append, np.int32),
            "append_timestamp": rows(headers["max_timestamp"], np.int64, ~log_append),
            **{
                name: rows(headers[name], RECORDS.field(name).type.to_pandas_dtype())
                for name in ("leader_epoch", "producer_id", "producer_epoch", "base_sequence", "attributes")
            },
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in RECORDS.names], schema=RECORDS), index
