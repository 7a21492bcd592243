"""Unjudged records are counted once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from archiver.records.unjudged import UnjudgedRecords

BLOCK: Any = SimpleNamespace(index=0)


def records(partition: int, *offsets: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"partition": pa.array([partition] * len(offsets), pa.int32()), "offset": pa.array(offsets, pa.int64())}
    )


def test_a_block_of_two_partitions_counts_both() -> None:
    unjudged = UnjudgedRecords()
    for partition in (0, 1):
        unjudged.forget("file", BLOCK, partition)
        unjudged.note("file", BLOCK, records(partition, 5, 6))
    assert unjudged.count == 4
    unjudged.forget("file", BLOCK, 1)
    assert unjudged.count == 2
    unjudged.forget("file", BLOCK)
    assert unjudged.count == 0
