"""A consumer-protocol group."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from archiver.serve.groups.consumer import (
    ConsumerState,
    PartitionId,
)
from tests.support.kafka.consumer_group import OK, ORDERS, REBALANCE, REFUNDS, TIMES, Course, places, topics


def test_the_first_member_gets_everything() -> None:
    course = Course()
    answer = course.join("a")
    assert (answer.error, answer.epoch, answer.assigned) == (OK, 1, places(ORDERS, 0, 1, 2, 3))
    assert course.group.state is ConsumerState.STABLE
    assert course.beat("a", 1).assigned == answer.assigned, "it hasn't said that it knows"
    assert course.beat("a", 1, owned=answer.assigned).assigned is None
    assert course.beat("a", 1).assigned is None, "nothing has changed"


def test_partition_moves_only_after_its_owner_revokes_it() -> None:
    course = Course()
    course.beat("a", 1, owned=course.join("a").assigned)
    assert course.join("b").assigned == frozenset()
    answer = course.beat("a", 1)
    assert answer.epoch == 1, "its epoch rises when it has given up"
    assert answer.assigned is not None
    assert len(answer.assigned) == 2
    assert course.beat("b", 2).assigned is None, "not yet"
    assert course.beat("a", 1).assigned == answer.assigned, "the answer may have been lost"
    assert course.beat("a", 1, owned=answer.assigned).epoch == 2
    given = course.beat("b", 2).assigned
    assert given == places(ORDERS, 0, 1, 2, 3) - answer.assigned
    assert course.group.state is ConsumerState.STABLE


def test_who_does_not_give_up_in_its_time_is_let_go() -> None:
    course = Course()
    course.join("a")
    course.join("b")
    course.beat("a", 1)
    for _ in range(int(REBALANCE / 5)):
        assert course.beat("a", 1).error == OK
        assert course.beat("b", 2).assigned is None
        course.wait(5.0)
    assert course.beat("a", 1).error == ErrorCode.unknown_member_id
    assert course.beat("b", 2).assigned == places(ORDERS, 0, 1, 2, 3)


def test_a_silent_member_is_let_go() -> None:
    course = Course()
    course.two()
    course.wait(TIMES.session - 1)
    course.beat("a", 2)
    course.wait(1.5)
    assert course.beat("a", 2).assigned == places(ORDERS, 0, 1, 2, 3)
    assert course.beat("b", 2).error == ErrorCode.unknown_member_id
    assert course.join("b").error == OK


def test_who_leaves_makes_room_at_once() -> None:
    course = Course()
    course.two()
    assert course.beat("b", -1).epoch == -1
    assert course.beat("a", 2).assigned == places(ORDERS, 0, 1, 2, 3)
    assert course.beat("a", -1).error == OK
    assert (course.group.state, course.group.is_unused) == (ConsumerState.EMPTY, True)


@pytest.mark.parametrize(("epoch", "owned"), [(3, None), (0x7FFF, None), (1, places(ORDERS, 0, 1, 2, 3))])
def test_a_member_at_another_epoch_is_fenced(epoch: int, owned: frozenset[PartitionId] | None) -> None:
    course = Course()
    course.two()
    assert course.beat("a", epoch, owned=owned).error == ErrorCode.fenced_member_epoch
    assert course.join("a").error == OK, "it begins again"


def test_a_member_that_missed_its_epoch_is_told_again() -> None:
    course = Course()
    course.two()
    assigned = course.group.members["a"].assigned
    for owned in (assigned, None):
        answer = course.beat("a", 1, owned=owned)
        assert (answer.error, answer.epoch, answer.assigned) == (OK, 2, assigned)


def test_invented_partitions_take_no_memory() -> None:
    course = Course()
    own = course.join("a").assigned
    assert own is not None
    strange = places(UUID(int=77), *range(10_000))
    for owned in (own | strange, strange):
        assert course.beat("a", 1, owned=owned).assigned == own
        assert len(course.group.members["a"].owned) <= len(own) + 1
        assert course.beat("a", 1).assigned == own, "it hasn't said that it holds just that"
    assert course.beat("a", 1, owned=own).assigned is None


def test_a_static_member_that_comes_back_finds_what_it_had() -> None:
    course = Course()
    course.beat("a", 1, owned=course.join("a").assigned)
    course.join("b", instance_id="i")
    kept = course.beat("a", 1).assigned
    course.beat("a", 1, owned=kept)
    assigned = course.beat("b", 2, instance_id="i").assigned
    refused = course.join("c", instance_id="i")
    assert refused.error == ErrorCode.unreleased_instance_id
    assert course.beat("b", -2, instance_id="i").epoch == -2
    course.wait(TIMES.session / 2)
    assert course.beat("a", 2).assigned is None, "nothing moves while it is away"
    answer = course.join("c", instance_id="i")
    assert (answer.error, answer.epoch, answer.assigned) == (OK, 2, assigned)
    assert course.beat("b", 2, instance_id="i").error == ErrorCode.fenced_instance_id
    assert course.beat("b", -1, instance_id="i").error == ErrorCode.fenced_instance_id


def test_a_static_member_that_stays_away_loses_its_place() -> None:
    course = Course()
    course.join("a", instance_id="i")
    course.beat("a", -2, instance_id="i")
    course.wait(TIMES.session + 1)
    assert course.group.is_unused


def test_away_static_member_keeps_only_its_share() -> None:
    course = Course()
    assigned = course.join("a", instance_id="i").assigned
    assert assigned is not None
    course.beat("a", -2, instance_id="i")
    given = course.join("b").assigned
    assert given is not None
    assert len(given) == 2, "nobody reads them, so nobody has to give them up"
    assert course.join("c", instance_id="i").assigned == assigned - given


def test_partitions_that_come_and_go_are_assigned() -> None:
    course = Course(topics=topics())
    assert course.join("a", names=frozenset({"orders", "refunds"})).assigned == frozenset()
    course.topics = topics(orders=1)
    assert course.beat("a", 1).assigned == places(ORDERS, 0)
    course.topics = topics(orders=2, refunds=1)
    assert course.beat("a", 2).assigned == places(ORDERS, 0, 1) | places(REFUNDS, 0)
    epoch = course.group.epoch
    course.topics = topics(orders=2, refunds=1)
    course.beat("a", epoch, owned=places(ORDERS, 0, 1) | places(REFUNDS, 0))
    assert course.group.epoch == epoch, "another mapping that says the same"
    course.topics = topics(refunds=1)
    assert course.beat("a", epoch).assigned == places(REFUNDS, 0)


def test_a_pattern_finds_topics_as_they_come() -> None:
    course = Course(topics=topics(orders=1))
    assert course.join("a", names=None, pattern="ord.*|ref.*").assigned == places(ORDERS, 0)
    course.topics = topics(orders=1, refunds=1)
    assert course.beat("a", 1).assigned == places(ORDERS, 0) | places(REFUNDS, 0)
    course.beat("a", 2, owned=places(ORDERS, 0) | places(REFUNDS, 0))
    answer = course.beat("a", 2, pattern="ref.*")
    assert answer.assigned == places(REFUNDS, 0)


def test_the_assignor_is_the_one_that_most_ask_for() -> None:
    course = Course()
    course.join("a")
    assert course.group.assignor == "uniform"
    course.join("b", assignor="range")
    assert course.group.assignor == "range"
    assert course.group.targets == {"a": places(ORDERS, 0, 1), "b": places(ORDERS, 2, 3)}


@pytest.mark.parametrize(
    ("epoch", "values", "error"),
    [
        (0, {"assignor": "mine"}, ErrorCode.unsupported_assignor),
        (0, {"pattern": "["}, ErrorCode.invalid_regular_expression),
        (0, {"names": None}, ErrorCode.invalid_request),
        (0, {"owned": places(ORDERS, 0)}, ErrorCode.invalid_request),
        (0, {"owned": None}, ErrorCode.invalid_request),
        (0, {"rebalance_seconds": None}, ErrorCode.invalid_request),
        (0, {"instance_id": ""}, ErrorCode.invalid_request),
        (0, {"rack_id": ""}, ErrorCode.invalid_request),
        (-2, {}, ErrorCode.invalid_request),
        (-3, {}, ErrorCode.invalid_request),
        (5, {}, ErrorCode.unknown_member_id),
        (-1, {}, ErrorCode.unknown_member_id),
        (5, {"instance_id": "i"}, ErrorCode.unknown_member_id),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_no_trace(epoch: int, values: dict[str, Any], error: ErrorCode) -> None:
    course = Course()
    whole = {"rebalance_seconds": REBALANCE, "names": frozenset({"orders"}), "owned": frozenset(), **values}
    answer = course.beat("a", epoch, **whole)
    assert answer.error == error
    assert answer.message
    assert course.group.is_unused
    assert course.beat("", 0).error == ErrorCode.invalid_request


def test_offsets_are_committed_by_those_who_read() -> None:
    course = Course()
    course.beat("a", 1, owned=course.join("a").assigned)
    course.join("b")
    kept = course.beat("a", 1).assigned
    assert kept is not None
    lost = places(ORDERS, 0, 1, 2, 3) - kept
    commit = course.group.commit_error
    assert commit("a", None, 1, lost) == OK, "before it gives up, it commits what it has read"
    course.beat("a", 1, owned=kept)
    given = course.beat("b", 2).assigned
    assert given == lost
    assert commit("a", None, 2, kept) == OK
    assert commit("a", None, 1, kept) == OK, "its own all the time, only its epoch has risen"
    assert commit("a", None, 1, lost) == ErrorCode.stale_member_epoch
    assert commit("b", None, 1, lost) == ErrorCode.stale_member_epoch
    assert commit("b", None, 3, lost) == ErrorCode.stale_member_epoch
    assert commit("c", None, 2, kept) == ErrorCode.unknown_member_id
    assert commit("a", "i", 2, kept) == OK
    assert course.group.fetch_error("a", 2) == OK
    assert course.group.fetch_error(None, -1) == OK
    assert course.group.fetch_error("a", 1) == ErrorCode.stale_member_epoch
    assert course.group.fetch_error("c", 2) == ErrorCode.unknown_member_id
