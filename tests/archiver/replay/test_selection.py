"""Starts and ends that people write, and the records that a selection has."""

from __future__ import annotations

from typing import Any

import pytest

from archiver.errors import ConfigError
from archiver.replay.export import records
from archiver.replay.selection import AtOffset, AtTime, Earliest, Latest, Selection, parse_point
from tests.support.archive.lake import Lake


def offsets(lake: Lake, **selection: Any) -> list[tuple[int, int]]:
    return [
        (row["partition"], row["offset"])
        for batch in records(lake.archive(), Selection.parse(**selection))
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("earliest", Earliest()),
        (" LATEST ", Latest()),
        ("0", AtOffset(0)),
        ("1200", AtOffset(1200)),
        ("1970-01-01T00:00:01Z", AtTime(1_000)),
        ("1970-01-01T01:00:00.5+01:00", AtTime(500)),
        ("1970-01-01T00:00:00.0000001Z", AtTime(0)),
        ("1970-01-01T00:00:00.000001Z", AtTime(1)),
        ("1969-12-31T23:59:59.9999Z", AtTime(0)),
    ],
)
def test_points(text: str, point: object):
    assert parse_point(text) == point


@pytest.mark.parametrize("text", ["", "-5", "yesterday", "2026-01-31", "2026-01-31T00:00:00", "1e3"])
def test_what_is_no_point(text: str):
    with pytest.raises(ConfigError, match="such as"):
        parse_point(text)


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
