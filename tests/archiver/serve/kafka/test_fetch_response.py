"""kio reads fetch responses."""

from __future__ import annotations

from uuid import UUID

import pytest
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader

from archiver.serve.kafka.fetch_response import BY_ID, FetchedPartition, packed

PARTS = (memoryview(b"first batch"), memoryview(b"s" * 300))


@pytest.mark.parametrize("version", range(4, 19))
@pytest.mark.parametrize("committed", [True, False])
def test_a_response_is_read_by_others(version: int, *, committed: bool) -> None:
    topics = [UUID(int=5), UUID(int=6)] if version >= BY_ID else ["orders", "ü"]
    full = FetchedPartition(partition=3, high_watermark=70, log_start=2, parts=PARTS)
    wrong = FetchedPartition(partition=4, error=ErrorCode.offset_out_of_range, high_watermark=9, log_start=1)
    empty = FetchedPartition(partition=0, high_watermark=0, log_start=0)
    body = packed(version, [(topics[0], [full, wrong]), (topics[1], [empty])], session_id=77, committed=committed)
    assert any(piece is PARTS[1] for piece in body), "batches are handed on as they lie in memory"
    data = b"".join(bytes(piece) for piece in body)
    answer, size = entity_reader(load_response_schema(1, version))(data, 0)
    assert size == len(data)
    assert getattr(answer, "session_id", 77) == 77
    named = [response.topic_id if version >= BY_ID else response.topic for response in answer.responses]
    assert named == topics
    first, second = answer.responses[0].partitions
    assert (first.partition_index, first.error_code, first.records) == (3, ErrorCode.none, b"".join(PARTS))
    assert (first.high_watermark, first.last_stable_offset) == (70, 70)
    assert getattr(first, "log_start_offset", 2) == 2
    assert getattr(first, "preferred_read_replica", -1) == -1
    assert first.aborted_transactions == (() if committed else None)
    assert (second.partition_index, second.error_code) == (4, ErrorCode.offset_out_of_range)
    assert (second.records, answer.responses[1].partitions[0].records) == (b"", b""), "empty, never null"


@pytest.mark.parametrize("version", range(7, 19))
def test_an_error_of_the_whole_request(version: int) -> None:
    data = b"".join(map(bytes, packed(version, (), error=ErrorCode.fetch_session_id_not_found)))
    answer, size = entity_reader(load_response_schema(1, version))(data, 0)
    assert (size, answer.error_code, answer.responses) == (len(data), ErrorCode.fetch_session_id_not_found, ())
