"""Rights and room in consumer groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from archiver.serve.groups.consumer import (
    MOST_BYTES,
)
from tests.support.kafka.consumer_group import OK, ORDERS, REFUNDS, TIMES, Course, places, topics


@dataclass(frozen=True, slots=True, eq=False)
class Rights:
    seen: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()

    def sees(self, topic: str) -> bool:
        return topic in self.seen

    def reads(self, topic: str) -> bool:
        return topic in self.read


BOTH = frozenset({"orders", "refunds"})


def test_pattern_never_adds_unreadable_topics() -> None:
    course = Course(topics=topics(orders=2))
    course.join("all", names=None, pattern=".*", rights=None)
    some = Rights(seen=BOTH, read=frozenset({"refunds"}))
    assert course.join("some", names=None, pattern=".*", rights=some).assigned == frozenset()
    course.topics = topics(orders=2, refunds=2)
    answer = course.beat("some", 2, rights=some)
    assert answer.assigned
    assert {topic for topic, _ in answer.assigned} == {REFUNDS}
    answer = course.beat("all", 1, rights=None)
    course.topics = topics(orders=8, refunds=2)
    course.beat("all", answer.epoch, rights=None)
    assert {topic for topic, _ in course.group.targets["some"]} == {REFUNDS}


@pytest.mark.parametrize("subscription", [{"names": BOTH}, {"names": None, "pattern": ".*"}])
def test_rights_that_are_taken_away_take_partitions_away(subscription: dict[str, Any]) -> None:
    course = Course(topics=topics(orders=1, refunds=1))
    both = Rights(seen=BOTH, read=BOTH)
    joined = course.join("a", rights=both, **subscription)
    assert joined.assigned == places(ORDERS, 0) | places(REFUNDS, 0)
    assert course.beat("a", joined.epoch, rights=both, owned=joined.assigned).assigned is None, "nothing changed"
    rights = Rights(seen=frozenset({"orders"}), read=frozenset({"orders"}))
    answer = course.beat("a", joined.epoch, rights=rights)
    assert answer.assigned == places(ORDERS, 0)
    answer = course.beat("a", joined.epoch, rights=rights, owned=places(ORDERS, 0))
    assert answer.epoch > joined.epoch
    again = course.beat("a", answer.epoch, rights=both)
    assert again.assigned == places(ORDERS, 0) | places(REFUNDS, 0)


def test_subscriptions_beyond_the_groups_room_are_refused() -> None:
    course = Course()
    half = MOST_BYTES // 2

    def named(letter: str, size: int) -> dict[str, Any]:
        return {"names": frozenset({letter * (size - 6), "orders"})}

    assert course.join("a", **named("a", half)).error is OK
    refused = course.join("b", **named("b", half + 1))
    assert refused.error is ErrorCode.group_max_size_reached
    assert set(course.group.members) == {"a"}
    assert course.join("b", **named("b", half)).error is OK
    assert course.group.size == MOST_BYTES
    assert course.join("a", **named("c", half)).error is OK, "in place of what it said before"
    assert course.join("a", pattern="c", **named("c", half)).error is ErrorCode.group_max_size_reached
    course.group.tick(course.now + TIMES.session)
    assert course.group.size == 0, "who is gone says nothing"


def test_what_a_heartbeat_leaves_out_still_counts() -> None:
    course = Course()
    joined = course.join("a", names=frozenset({"n" * (MOST_BYTES - 10)}))
    assert course.beat("a", joined.epoch, pattern="p" * 11).error is ErrorCode.group_max_size_reached
    assert course.beat("a", joined.epoch, pattern="p" * 10).error is OK
    assert course.group.size == MOST_BYTES


def test_replacement_of_a_static_member_takes_its_room() -> None:
    course = Course()
    names = frozenset({"n" * (MOST_BYTES // 2 + 1)})
    joined = course.join("a", instance_id="i", names=names)
    assert course.beat("a", -2, instance_id="i").error is OK
    assert course.join("b", instance_id="i", names=names).error is OK
    assert course.group.size == MOST_BYTES // 2 + 1
    assert joined.error is OK
