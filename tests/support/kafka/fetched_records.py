"""Default columns of records from Kafka (archiver/wire/columns.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from archiver.files.records import Batches, Records
from archiver.ingest.kafka_log.grouping import records_of

PLAIN: Final[dict[str, Any]] = {
    "timestamp": 1_700_000_000_123,
    "headers": [],
    "timestamp_type": 0,
    "append_timestamp": None,
    "leader_epoch": 4,
    "producer_id": -1,
    "producer_epoch": -1,
    "base_sequence": -1,
    "attributes": 0,
}
"""A record outside transactions, without headers. Offset, key, value and batch are the test's."""


def as_records(fetched: pa.RecordBatch, *, rows: Sequence[int] = (), times: Sequence[int] = ()) -> Records:
    counts = np.array(rows or [fetched.num_rows], np.int64)
    first = np.cumsum(counts) - counts
    starts, ends = (fetched.column(name).to_numpy()[first] for name in ("batch_start", "batch_end"))
    batches = Batches(
        first_offset=starts,
        last_offset=ends,
        rows=counts,
        times=np.array(times, np.int64) if times else np.zeros(len(counts), np.int64),
    )
    return records_of(fetched, batches, start_offset=int(starts[0]))
