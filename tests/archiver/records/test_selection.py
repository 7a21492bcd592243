"""Starts and ends, and their offsets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.errors import ConfigError
from archiver.records.selection import AtOffset, AtTime, Earliest, Latest, Point, Selection, parse_point
from archiver.records.where import Where
from archiver.replay.export import records
from archiver.storage.segment import RowRange
from tests.support.archive.lake import Lake


class Archive:
    topic = "orders"
    partitions = (0, 3)

    def end(self, partition: int) -> int:
        return {0: 100, 3: 5}[partition]

    def first_offset(self, partition: int) -> int:
        return 0

    def offset_for_time(self, partition: int, timestamp: int) -> int | None:
        return 60 if (partition, timestamp) == (0, 1_000) else None


def ranges(**asked: Any) -> list[tuple[int, int, int]]:
    selected: list[RowRange] = list(Selection.parse(**asked).resolve(cast("Any", Archive())))
    return [(range_.partition, range_.start_offset, range_.end_offset) for range_ in selected]


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("earliest", Earliest()),
        (" Beginning ", Earliest()),
        ("latest", Latest()),
        ("END", Latest()),
        ("1200", AtOffset(1200)),
        ("1970-01-01T00:00:01Z", AtTime(1_000)),
        ("1970-01-01T02:00:01+02:00", AtTime(1_000)),
        ("1970-01-01T00:00:00.000001Z", AtTime(1)),
        ("1969-12-31T23:59:59.999999Z", AtTime(0)),
    ],
)
def test_points(text: str, point: Point) -> None:
    assert parse_point(text) == point


@pytest.mark.parametrize(("text", "why"), [("-5", "neither"), ("soon", "neither"), ("2026-01-31T00:00:00", "no zone")])
def test_what_means_nothing_is_an_error_that_shows_it(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as error:
        parse_point(text)
    assert error.value.context["found"] == text


@given(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)), st.integers(-720, 720))  # noqa: DTZ001
def test_a_time_is_the_first_millisecond_at_or_after_it(moment: datetime, minutes: int) -> None:
    zoned = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    point = parse_point(zoned.isoformat())
    assert isinstance(point, AtTime)
    after = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=point.timestamp) - zoned
    assert timedelta() <= after < timedelta(milliseconds=1)


def test_everything_is_the_default() -> None:
    assert ranges() == [(0, 0, 100), (3, 0, 5)]


def test_the_end_is_not_included_and_never_after_the_archive_s() -> None:
    assert ranges(start="3", end="4", partitions=(3,)) == [(3, 3, 4)]
    assert ranges(start="3", end="1000") == [(0, 3, 100), (3, 3, 5)]


def test_a_time_without_a_later_record_is_the_end() -> None:
    assert ranges(start="1970-01-01T00:00:01Z") == [(0, 60, 100)]
    assert ranges(end="1970-01-01T00:00:01Z") == [(0, 0, 60), (3, 0, 5)]


def test_a_partition_without_anything_between_is_left_out() -> None:
    assert ranges(start="5") == [(0, 5, 100)]
    assert ranges(start="latest") == []


def test_partitions_come_once_and_in_order() -> None:
    assert ranges(end="1", partitions=(3, 0, 3)) == [(0, 0, 1), (3, 0, 1)]


def test_a_partition_that_is_not_archived_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no such partition") as error:
        ranges(partitions=(0, 1))
    assert error.value.context["partitions"] == [1]


def offsets(lake: Lake, **selection: Any) -> list[tuple[int, int]]:
    return [
        (row["partition"], row["offset"])
        for batch in records(lake.archive(), Selection.parse(**selection))
        for row in batch.to_pylist()
    ]


def test_selections(filled: Lake):
    assert offsets(filled) == [(0, i) for i in range(10)] + [(1, i) for i in range(4)]
    assert offsets(filled, start="2", end="5", partitions=(0,)) == [(0, 2), (0, 3), (0, 4)]
    assert offsets(filled, start="1970-01-01T00:00:01.5Z", end="1970-01-01T00:00:05Z") == [
        (0, 2),
        (0, 3),
        (0, 4),
        (1, 3),
    ]
    assert offsets(filled, start="latest") == []
    assert offsets(filled, start="1970-01-01T00:00:09.001Z") == []
    with pytest.raises(ConfigError, match=r"partition.*\[7\]"):
        offsets(filled, partitions=(0, 7))


@pytest.mark.parametrize("text", ["2026-11-01", "2026-11-01Z", " 2026-11-01 "])
def test_a_day_is_its_midnight_in_utc(text: str) -> None:
    assert parse_point(text) == parse_point("2026-11-01T00:00:00Z")
    condition = Where.parse(f"time >= {text.strip()}").condition
    assert condition == Where.parse("time >= 2026-11-01T00:00:00Z").condition
