"""Holds with times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pyarrow as pa
import pytest

from archiver.archive.topic_archive import TopicArchive
from archiver.records.selection import AtTime
from archiver.upkeep.holds import end_of, start_of

TIME = 1_000


class Archived:
    def __init__(self, *records: tuple[int, int], end: int) -> None:
        self._records = records
        self._end = end

    def end(self, _partition: int) -> int:
        return self._end

    def offset_for_time(self, _partition: int, timestamp: int) -> int | None:
        return next((offset for offset, time in self._records if time >= timestamp), None)

    def records(self, _partition: int) -> Iterator[pa.RecordBatch]:
        for offset, time in self._records:
            yield pa.RecordBatch.from_pydict(
                {"offset": pa.array([offset], pa.int64()), "timestamp": pa.array([time], pa.int64())}
            )


@pytest.mark.parametrize(
    ("archived", "end"),
    [
        pytest.param(Archived((0, 1), (1, 2), end=2), None, id="all are older"),
        pytest.param(Archived((0, 1), (1, 2), end=3), None, id="all are older, and a commit marker follows"),
        pytest.param(Archived(end=500), None, id="no records: what comes may be older"),
        pytest.param(Archived((0, 1), (4, 2), (5, TIME), end=6), 5, id="the newest is younger"),
        pytest.param(Archived((0, 1), (1, TIME), (2, 3), (3, TIME), end=5), 3, id="an older one among younger"),
        pytest.param(Archived((0, TIME), (1, 3), end=5), None, id="an older one at the end"),
        pytest.param(Archived((7, TIME), end=8), 0, id="all are younger"),
    ],
)
def test_time_end_is_open_until_a_younger_record(archived: Archived, end: int | None) -> None:
    assert end_of(cast("TopicArchive", archived), 0, AtTime(TIME)) == end


def test_unarchived_start_time_is_the_archive_end() -> None:
    archived = cast("TopicArchive", Archived((0, 1), end=3))
    assert start_of(archived, 0, AtTime(TIME)) == 3
    assert start_of(archived, 0, AtTime(1)) == 0
