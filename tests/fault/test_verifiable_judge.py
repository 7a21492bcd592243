"""The judge of VerifiableConsumers finds violations."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.support.clients.verifiable_consumers import Judge, Seen


def places(*partitions: int) -> dict[str, Any]:
    return {"partitions": [{"topic": "t", "partition": partition} for partition in partitions]}


def assigned(*partitions: int) -> dict[str, Any]:
    return {"name": "partitions_assigned", **places(*partitions)}


def revoked(*partitions: int) -> dict[str, Any]:
    return {"name": "partitions_revoked", **places(*partitions)}


def consumed(partition: int, first: int, last: int) -> dict[str, Any]:
    part = {"topic": "t", "partition": partition, "minOffset": first, "maxOffset": last}
    return {"name": "records_consumed", "count": last - first + 1, "partitions": [part]}


def committed(partition: int, offset: int, *, success: bool = True) -> dict[str, Any]:
    part = {"topic": "t", "partition": partition, "offset": offset}
    return {"name": "offsets_committed", "success": success, "offsets": [part]}


RIGHT = [assigned(0, 1), consumed(0, 0, 9), committed(0, 10), consumed(0, 10, 14), committed(0, 15, success=False)]


@pytest.mark.parametrize(
    ("events", "wrong"),
    [
        (RIGHT, []),
        ([consumed(0, 0, 9)], ["a: consumed 0 at 0 without having it"]),
        ([*RIGHT, revoked(0), consumed(0, 15, 19)], ["a: consumed 0 at 15 without having it"]),
        ([*RIGHT, consumed(0, 16, 19)], ["a: consumed 0 at 16 instead of 15"]),
        ([*RIGHT, consumed(0, 12, 19)], ["a: consumed 0 at 12 instead of 15"]),
        ([*RIGHT, revoked(0), assigned(0), consumed(0, 10, 19)], []),
        (
            [*RIGHT, revoked(0), assigned(0), consumed(0, 0, 9)],
            ["a: consumed 0 at 0, though 10 was committed"],
        ),
        ([assigned(0), consumed(0, 0, 9), committed(0, 11)], ["a: committed 11 of 0, and had come to 10"]),
        (
            [assigned(0), committed(1, 5)],
            ["a: committed 1 without having it", "a: committed 5 of 1, and had come to -1"],
        ),
        ([assigned(0), revoked(0, 1)], ["a: had to give up {1} without having it"]),
        ([assigned(0), assigned(0, 1)], ["a: assigned {0} again"]),
    ],
)
def test_what_may_not_be_is_found(events: list[dict[str, Any]], wrong: list[str]) -> None:
    judge = Judge("consumer")
    seen = Seen("a", judge)
    for event in events:
        seen.take(event)
    assert judge.wrong == wrong


def test_paused_member_may_finish_its_records_and_no_later_ones() -> None:
    judge = Judge("consumer")
    first, second = Seen("a", judge), Seen("b", judge)
    for event in (assigned(0), consumed(0, 0, 9), committed(0, 10)):
        first.take(event)
    for event in (assigned(0), consumed(0, 10, 29), committed(0, 30)):
        second.take(event)
    first.excused_until = time.monotonic() + 60
    first.take(consumed(0, 10, 19))
    assert judge.wrong == []
    first.take(assigned(1))
    first.take(consumed(0, 20, 24))
    assert judge.wrong == ["a: consumed 0 at 20, though 30 was committed"]


def test_what_was_committed_and_never_consumed_is_lost() -> None:
    judge = Judge("range")
    seen = Seen("a", judge)
    for event in (assigned(0), consumed(0, 5, 9), committed(0, 10)):
        seen.take(event)
    assert judge.lost() == ["lost 0 to 4 of 0"]
    judge.committed[1] = 3
    assert "1 was committed up to 3, and consumed up to 0" in judge.lost()
