"""Resets of group offsets."""

from __future__ import annotations

from typing import Any

import pytest

from archiver.errors import ConfigError
from archiver.kafka.group_offsets import CommittedOffset
from archiver.kafka.group_resets import (
    ResetTo,
    ShiftBy,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
    planned_moves,
)


class Log:
    def list_offsets(self, _topic: str, partitions: list[int], at: str | int) -> dict[int, int]:
        offset = {"earliest": 10, "latest_stable": 100}.get(str(at))
        return dict.fromkeys(partitions, min(max(int(at), 10), 100) if offset is None else offset)


BEFORE = {"t": {0: CommittedOffset(offset=50), 1: CommittedOffset(offset=95)}}


def moved(to: ResetTo, partitions: tuple[int, ...] = (0, 1)) -> list[tuple[int, int | None, int]]:
    brokers: Any = Log()
    return [(move.partition, move.before, move.after) for move in planned_moves(brokers, to, {"t": partitions}, BEFORE)]


@pytest.mark.parametrize(
    ("to", "after"),
    [
        (ToEarliest(), [10, 10]),
        (ToLatest(), [100, 100]),
        (ToOffset(60), [60, 60]),
        (ToOffset(3), [10, 10]),
        (ToOffset(1000), [100, 100]),
        (ToTime(77), [77, 77]),
        (ShiftBy(-20), [30, 75]),
        (ShiftBy(20), [70, 100]),
        (ShiftBy(-70), [10, 25]),
    ],
)
def test_a_group_goes_on_within_the_log(to: ResetTo, after: list[int]) -> None:
    assert moved(to) == [(0, 50, after[0]), (1, 95, after[1])]


def test_a_partition_without_an_offset_has_none_before() -> None:
    assert moved(ToEarliest(), (2,)) == [(2, None, 10)]


def test_what_has_no_offset_cannot_be_shifted() -> None:
    with pytest.raises(ConfigError, match="no offset there") as refused:
        moved(ShiftBy(1), (0, 2))
    assert refused.value.context["partitions"] == "t-2"
