"""Samples a whole log: the same records while the log is the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Final

import pyarrow as pa

from archiver.kafka import BrokerClient, PartitionFetcher

STRETCHES: Final = 4
"""Places in a partition's log that records are taken from."""
SHORTEST: Final = 250
"""Records of a stretch, if there are as many."""
MOST_BYTES: Final = 256 << 20
"""All sampled records together."""
_FETCH_BYTES: Final = 1 << 20


def spread_records(brokers: BrokerClient, topic: str, most: int) -> Iterator[pa.RecordBatch]:
    """Committed records, as `archiver.wire.RECORDS`. Raises the errors of BrokerClient and the fetch."""
    described = brokers.described(topic)
    starts = brokers.list_offsets(topic, described.partitions, "earliest")
    ends = brokers.list_offsets(topic, described.partitions, "latest_stable")
    left = MOST_BYTES
    for partition, count in shares({p: ends[p] - starts[p] for p in described.partitions}, most).items():
        fetcher = PartitionFetcher(brokers, topic, described.topic_id, partition)
        for start, end, expected in stretches(starts[partition], ends[partition], count):
            missing = expected
            with closing(fetcher.batches(start, end, cut_head=True, max_bytes=_FETCH_BYTES)) as pieces:  # type: ignore[type-var]
                for piece in pieces:
                    rows = piece.records.slice(0, missing)
                    missing -= rows.num_rows
                    left -= rows.nbytes
                    yield rows
                    if left <= 0:
                        return
                    if missing <= 0:
                        break


def shares(sizes: Mapping[int, int], most: int) -> dict[int, int]:
    """Evenly, but no partition gives more than its offsets."""
    shared: dict[int, int] = {}
    left = most
    smallest_first = sorted((size, partition) for partition, size in sizes.items() if size > 0)
    for index, (size, partition) in enumerate(smallest_first):
        shared[partition] = min(size, -(-left // (len(smallest_first) - index)))
        left -= shared[partition]
    return {partition: shared[partition] for partition in sorted(shared) if shared[partition]}


def stretches(start: int, end: int, most: int) -> Iterator[tuple[int, int, int]]:
    """Yield ranges, each with its number of records, `most` in all."""
    if end - start <= most:
        yield start, end, most
        return
    count = max(1, min(STRETCHES, most // SHORTEST))
    for number in range(count):
        first = start + (end - start) * number // count
        after = start + (end - start) * (number + 1) // count
        yield first, after, most * (number + 1) // count - most * number // count
