"""Room in a classic group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from archiver.serve.groups import ClassicGroup, GroupBudget, Syncing
from archiver.serve.groups.classic.group import MOST_BYTES
from tests.support.kafka.classic_group import DELAY, OK, SESSION, Course


def test_oversized_classic_members_are_refused() -> None:
    course = Course()
    half = (("range", bytes(MOST_BYTES // 2)),)
    first, _ = course.named(protocols=half)
    answer = course.answers[course.join(protocols=half)]
    assert answer.error == ErrorCode.group_max_size_reached
    assert list(course.group.members) == [first]
    assert course.answers[course.join()].error == ErrorCode.member_id_required, "there is room for a small one"


def test_an_assignment_that_a_group_has_no_room_for_is_refused() -> None:
    course = Course()
    member, ticket = course.named()
    course.wait(DELAY)
    generation = course.answers[ticket].generation

    def synced(size: int) -> Any:
        asked = Syncing(member_id=member, instance_id=None, generation=generation, assignments={member: bytes(size)})
        course.tickets += 1
        course.take(course.group.sync(course.now, course.tickets, asked))
        return course.answers[course.tickets]

    assert synced(MOST_BYTES).error == ErrorCode.unknown_server_error
    assert course.group.size < 100
    assert synced(1000).error == OK
    assert course.group.size > 1000


def test_ids_that_are_given_out_make_no_group() -> None:
    course = Course()
    answer = course.answers[course.join(session_seconds=1800.0)]
    assert answer.error == ErrorCode.member_id_required
    assert course.group.is_unused
    assert course.group.deadline() == float("inf")
    ticket = course.join(answer.member_id)
    course.wait(DELAY)
    assert course.answers[ticket].error == OK


@pytest.mark.parametrize(
    "changed",
    [
        lambda one: one.upper(),
        lambda one: "d" + one[1:],
        lambda one: one[:-1] + ("0" if one[-1] != "0" else "1"),
        lambda one: one[:-36] + "0" * 8 + one[-28:],
        lambda one: one[-36:],
        lambda _: "c-no-uuid",
    ],
)
def test_ids_that_were_not_given_out_are_unknown(changed: Callable[[str], str]) -> None:
    course = Course()
    member_id = course.answers[course.join()].member_id
    assert course.answers[course.join(changed(member_id))].error == ErrorCode.unknown_member_id
    other_course = Course(group=ClassicGroup("other"))
    assert other_course.answers[other_course.join(member_id)].error == ErrorCode.unknown_member_id


@pytest.mark.parametrize(("session", "holds"), [(SESSION, SESSION), (1800.0, 60.0)])
def test_an_id_can_be_joined_with_for_a_while(session: float, holds: float) -> None:
    course = Course()
    late = course.answers[course.join(session_seconds=session)].member_id
    in_time = course.answers[course.join(session_seconds=session)].member_id
    course.wait(holds - 0.1)
    course.join(in_time)
    assert in_time in course.group.members
    course.wait(0.2)
    assert course.answers[course.join(late)].error == ErrorCode.unknown_member_id


def test_a_rebalance_waits_for_a_bounded_number_of_ids() -> None:
    course = Course()
    course.stable(1)
    for _ in range(1500):
        course.join()
    assert len(course.group._pending) == 1000
    assert course.group.taken[""] > 1000 * 256


def test_a_member_counts_more_than_it_says() -> None:
    course = Course()
    course.join(needs_id=False, protocols=(("r", b""),), budget=GroupBudget(owner="a"))
    assert 1024 < course.group.taken["a"] < 2048
