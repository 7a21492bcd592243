"""The state of a Flight topic."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from archiver.topics.filled_state import filled_status
from archiver.topics.state import PartitionStatus, TopicStatus
from catalog.registry.intake_logs import IntakeLogRow

EMPTY = TopicStatus(topic="sensors", table="kafka.sensors")
ARCHIVED = TopicStatus(
    topic="sensors",
    table="kafka.sensors",
    partitions=(PartitionStatus(partition=0, archived_to=10, staged_to=15, staged_files=1, lag_records=None),),
)


def log_of(next_offsets: Mapping[int, int]) -> IntakeLogRow:
    return IntakeLogRow(
        wal_id="id",
        folder="host:/wal/sensors",
        epoch=1,
        drained=False,
        next_offsets=next_offsets,
        reported_at=datetime(2026, 11, 29, tzinfo=UTC),
    )


def ends(status: TopicStatus) -> list[tuple[int, int | None, int | None, int | None]]:
    return [(part.partition, part.archived_to, part.high_watermark, part.lag_records) for part in status.partitions]


def test_rows_of_the_log_wait_for_the_table() -> None:
    status = filled_status(ARCHIVED, log_of({0: 20, 1: 3}), partitions=3)
    assert ends(status) == [(0, 10, 20, 10), (1, None, 3, 3), (2, None, 0, 0)]
    assert status.lag_records == 13


def test_a_report_may_be_older_than_the_table() -> None:
    assert ends(filled_status(ARCHIVED, log_of({0: 4}), partitions=1)) == [(0, 10, 15, 5)]


def test_a_topic_that_was_never_served_has_no_rows() -> None:
    status = filled_status(EMPTY, None, partitions=2)
    assert ends(status) == [(0, None, 0, 0), (1, None, 0, 0)]
    assert status.lag_records == 0


def test_without_a_log_the_rest_of_a_table_is_unknown() -> None:
    status = filled_status(ARCHIVED, None, partitions=1)
    assert ends(status) == [(0, 10, None, None)]
    assert status.lag_records is None


def test_partitions_that_are_no_longer_configured_are_shown() -> None:
    status = filled_status(ARCHIVED, log_of({0: 15, 5: 2}), partitions=1)
    assert ends(status) == [(0, 10, 15, 5), (5, None, 2, 2)]
