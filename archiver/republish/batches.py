"""Encode archived records as producer batches, without an object per record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.archive.offset_order import offsets_of
from archiver.codecs import Codec
from archiver.kafka.transactional_writer import ProducerIdentity
from archiver.wire import RECORDS, encode_batches
from archiver.wire.attributes import TRANSACTIONAL
from archiver.wire.record_sizes import sizes_of

_CREATE_TIME: Final = 0
_NO_EPOCH: Final = -1


@dataclass(frozen=True, slots=True)
class ProducedRecords:
    """Records for one batch of the target. Timestamps become create times."""

    records: pa.RecordBatch
    codec: Codec

    @property
    def rows(self) -> int:
        return int(self.records.num_rows)

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        return offsets_of(self.records)

    def encode(self, identity: ProducerIdentity) -> memoryview:
        rows = self.rows
        columns = {
            "offset": pa.array(np.arange(rows, dtype=np.int64)),
            "timestamp": self.records.column("timestamp"),
            "key": self.records.column("key"),
            "value": self.records.column("value"),
            "headers": self.records.column("headers"),
            "batch_start": _constant(0, rows, pa.int64()),
            "batch_end": _constant(rows - 1, rows, pa.int64()),
            "timestamp_type": _constant(_CREATE_TIME, rows, pa.int32()),
            "append_timestamp": pa.nulls(rows, pa.int64()),
            "leader_epoch": _constant(_NO_EPOCH, rows, pa.int32()),
            "producer_id": _constant(identity.producer_id, rows, pa.int64()),
            "producer_epoch": _constant(identity.epoch, rows, pa.int32()),
            "base_sequence": _constant(identity.base_sequence, rows, pa.int32()),
            "attributes": _constant(TRANSACTIONAL, rows, pa.int32()),
        }
        wire = pa.RecordBatch.from_arrays([columns[name] for name in RECORDS.names], schema=RECORDS)
        return encode_batches(wire, compression=self.codec).data


def split_by_size(records: pa.RecordBatch, *, most_bytes: int, most_rows: int) -> Iterator[pa.RecordBatch]:
    """A record above `most_bytes` is a separate batch."""
    ends = np.cumsum(sizes_of(records))
    start = 0
    while start < records.num_rows:
        before = int(ends[start - 1]) if start else 0
        end = int(np.searchsorted(ends, before + most_bytes, side="right"))
        end = min(max(end, start + 1), start + most_rows)
        yield records.slice(start, end - start)
        start = end


def _constant(value: int, rows: int, kind: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), rows)
