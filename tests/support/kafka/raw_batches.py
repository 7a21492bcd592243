"""A partition's batches as Kafka servers send them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import timedelta

from tests.support.servers.served_lake import Wire, request

FETCH = 1
VERSION = 11
HEAD = struct.Struct(">qi")
MOST_BYTES = 4 << 20


def raw_batches(port: int, topic: str, partition: int, end: int) -> Iterator[bytes]:
    offset = 0
    with Wire(port) as wire:
        while offset < end:
            for batch in _whole(_fetched(wire, topic, partition, offset)):
                base, _ = HEAD.unpack_from(batch)
                (last_delta,) = struct.unpack_from(">i", batch, 23)
                assert base + last_delta >= offset
                offset = base + last_delta + 1
                yield batch


def _fetched(wire: Wire, topic: str, partition: int, offset: int) -> bytes:
    events = wire.ask(
        request(
            FETCH,
            VERSION,
            replica_id=-1,
            max_wait=timedelta(seconds=10),
            min_bytes=1,
            max_bytes=MOST_BYTES,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topic=topic,
            partition=partition,
            current_leader_epoch=-1,
            fetch_offset=offset,
            log_start_offset=-1,
            partition_max_bytes=MOST_BYTES,
            forgotten_topics_data=(),
            rack_id="",
        )
    )
    (result,) = events.responses[0].partitions
    assert result.error_code.value == 0, result.error_code
    records = bytes(result.records or b"")
    assert records, f"nothing came from offset {offset} of {topic}-{partition}"
    return records


def _whole(records: bytes) -> Iterator[bytes]:
    at = 0
    while at + HEAD.size <= len(records):
        end = at + HEAD.size + HEAD.unpack_from(records, at)[1]
        if end > len(records):
            return
        yield records[at:end]
        at = end
