"""Consumers skip batches without records."""

from __future__ import annotations

import pytest
from aiokafka.record.memory_records import MemoryRecords
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

from archiver.wire import decode_batches
from archiver.wire.gap import MOST_OFFSETS, gap_batch
from tests.support.kafka.record_batches import HEADER, marker


@pytest.mark.parametrize(("first", "last"), [(0, 0), (5, 9), (1 << 40, (1 << 40) + MOST_OFFSETS - 1)])
def test_it_is_a_control_batch_of_no_producer(first: int, last: int):
    data = bytes(gap_batch(first, last))
    for reader in (MemoryRecords(data), KafkaPythonRecords(data)):
        batch = reader.next_batch()
        assert batch.validate_crc()
        assert batch.is_control_batch
        assert (batch.base_offset, batch.base_offset + batch.last_offset_delta + 1) == (first, last + 1)
        assert reader.next_batch() is None
    decoded = decode_batches(data, start_offset=0, end_offset=1 << 62)
    assert (decoded.records.num_rows, decoded.next_offset) == (0, last + 1)


def test_its_record_is_that_of_a_commit_marker():
    assert bytes(gap_batch(7, 7))[HEADER.size :] == marker(base_offset=7, producer_id=1, commit=True)[HEADER.size :]


@pytest.mark.parametrize(("first", "last"), [(-1, 0), (3, 2), (0, MOST_OFFSETS)])
def test_offsets_that_no_batch_has_are_refused(first: int, last: int):
    with pytest.raises(ValueError, match="no batch reaches"):
        gap_batch(first, last)
