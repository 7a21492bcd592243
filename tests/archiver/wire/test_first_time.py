"""The first record's time, by header."""

from __future__ import annotations

from archiver.wire.first_time import first_time
from tests.support.kafka.record_batches import Record, build


def test_first_time_of_a_batch() -> None:
    batch = build([Record(timestamp=1_700_000_000_123)], base_offset=5, leader_epoch=1, builder="aiokafka")
    assert first_time(batch) == 1_700_000_000_123


def test_no_time_without_a_batch_of_format_two() -> None:
    batch = build([Record(timestamp=1_700_000_000_123)], base_offset=5, leader_epoch=1, builder="aiokafka")
    assert first_time(b"") is None
    assert first_time(batch[:40]) is None
    assert first_time(batch[:16] + b"\x01" + batch[17:]) is None
