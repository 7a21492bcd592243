"""Rebalances of a classic group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from archiver.serve.groups import GroupState, Joined, Synced
from tests.support.kafka.classic_group import DELAY, OK, REBALANCE, SESSION, Course


def test_members_join_and_get_what_the_leader_assigned() -> None:
    course = Course()
    joined = course.stable(3)
    assert [len(reply.members) for reply in joined].count(3) == 1, "one leader"
    assert len({reply.generation for reply in joined}) == len({reply.leader for reply in joined}) == 1
    synced = [answer for answer in course.answers.values() if isinstance(answer, Synced)]
    assert sorted(reply.assignment for reply in synced) == sorted(reply.member_id.encode() for reply in joined)


def test_old_clients_get_their_id_with_the_join() -> None:
    course = Course()
    ticket = course.join(needs_id=False)
    course.wait(DELAY)
    assert course.answers[ticket].error == OK
    assert course.answers[ticket].member_id


def test_another_member_makes_the_others_join_again() -> None:
    course = Course()
    (first,) = course.stable(1)
    _, ticket = course.named()
    assert ticket not in course.answers
    assert course.group.heartbeat(course.now, first.member_id, None, 1) == ErrorCode.rebalance_in_progress
    again = course.join(first.member_id)
    assert {course.answers[number].generation for number in (ticket, again)} == {2}


def test_who_does_not_come_back_is_left_out() -> None:
    course = Course()
    first, second = course.stable(2)
    _, ticket = course.named(session_seconds=60.0)
    again = course.join(first.member_id)
    course.wait(SESSION + 0.1)
    assert course.answers[again].generation == course.answers[ticket].generation == 2
    assert second.member_id not in course.group.members


def test_a_silent_member_is_expired() -> None:
    course = Course()
    first, second = course.stable(2)
    for _ in range(3):
        course.wait(SESSION / 2)
        course.group.heartbeat(course.now, first.member_id, None, 1)
    assert list(course.group.members) == [first.member_id]
    assert course.group.heartbeat(course.now, second.member_id, None, 1) == ErrorCode.unknown_member_id
    assert course.group.state is GroupState.PREPARING


def test_a_leader_that_never_assigns_is_left_out() -> None:
    course = Course()
    tickets = [course.named(session_seconds=1_000.0)[1] for _ in range(2)]
    course.wait(DELAY)
    follower = next(course.answers[ticket] for ticket in tickets if not course.answers[ticket].members)
    waiting = course.sync(follower)
    course.wait(REBALANCE + 0.1)
    assert course.answers[waiting].error == ErrorCode.rebalance_in_progress
    assert list(course.group.members) == [follower.member_id]


def test_leave_rebalances_and_the_last_one_ends_the_group() -> None:
    course = Course()
    first, second = course.stable(2)
    error, replies = course.group.leave(course.now, first.member_id, None)
    course.take(replies)
    assert error == OK
    assert course.group.state is GroupState.PREPARING
    error, replies = course.group.leave(course.now, second.member_id, None)
    course.take(replies)
    assert (error, course.group.state, course.group.is_unused) == (OK, GroupState.EMPTY, True)
    assert course.group.leave(course.now, second.member_id, None)[0] == ErrorCode.unknown_member_id


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    course = Course()
    ticket = course.join(instance_id="i")
    course.wait(DELAY)
    first = course.answers[ticket]
    course.sync(first, instance_id="i")
    again = course.answers[course.join(instance_id="i")]
    assert (again.error, again.generation, again.skips) == (OK, 1, True)
    assert again.member_id != first.member_id
    synced = course.answers[course.sync(again, instance_id="i")]
    assert synced.assignment == first.member_id.encode(), "as it was assigned"
    assert course.group.heartbeat(course.now, first.member_id, "i", 1) == ErrorCode.fenced_instance_id
    assert course.answers[course.join(first.member_id, instance_id="i")].error == ErrorCode.fenced_instance_id


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"protocol_type": "connect"}, ErrorCode.inconsistent_group_protocol),
        ({"protocols": (("sticky", b""),)}, ErrorCode.inconsistent_group_protocol),
        ({"protocols": ()}, ErrorCode.inconsistent_group_protocol),
        ({"member_id": "somebody"}, ErrorCode.unknown_member_id),
    ],
)
def test_who_does_not_fit_is_refused(changes: dict[str, Any], error: ErrorCode) -> None:
    course = Course()
    course.stable(1)
    member_id = changes.pop("member_id", "")
    assert course.answers[course.join(member_id, **changes)].error == error
    assert course.group.state is GroupState.STABLE


def test_the_protocol_that_all_know_is_chosen() -> None:
    course = Course()
    tickets = [
        course.named(protocols=(("a", b""), ("b", b"")))[1],
        course.named(protocols=(("b", b""), ("c", b"")))[1],
    ]
    course.wait(DELAY)
    assert {course.answers[ticket].protocol for ticket in tickets} == {"b"}


def test_who_may_commit() -> None:
    course = Course()
    commit = course.group.commit_error
    assert commit(0.0, "", None, -1) == OK, "nobody is in the group"
    (member,) = course.stable(1)
    assert commit(course.now, member.member_id, None, 1) == OK
    assert commit(course.now, member.member_id, None, 0) == ErrorCode.illegal_generation
    assert commit(course.now, "", None, -1) == ErrorCode.unknown_member_id
    course.named()
    assert commit(course.now, member.member_id, None, 1) == OK, "before it joins again, it commits what it has read"
    course.join(member.member_id)
    assert commit(course.now, member.member_id, None, 2) == ErrorCode.rebalance_in_progress


@dataclass(slots=True)
class Client:
    course: Course
    member_id: str = ""
    generation: int = -1
    assignment: bytes | None = None
    waits_for: int | None = None

    def step(self) -> None:
        group = self.course.group
        if self.waits_for is None:
            if self.assignment is None:
                self.waits_for = self.course.join(self.member_id)
            else:
                error = group.heartbeat(self.course.now, self.member_id, None, self.generation)
                if error != OK:
                    self._again(error)
                return
        answer = self.course.answers.get(self.waits_for)
        if answer is None:
            return
        self.waits_for = None
        match answer:
            case Joined(error=error) if error == ErrorCode.member_id_required:
                self.member_id = answer.member_id
            case Joined() | Synced() if answer.error != OK:
                self._again(answer.error)
            case Joined():
                self.generation = answer.generation
                self.waits_for = self.course.sync(answer)
            case Synced():
                self.assignment = answer.assignment

    def _again(self, error: ErrorCode) -> None:
        self.assignment = None
        self.member_id = "" if error == ErrorCode.unknown_member_id else self.member_id


@given(
    st.lists(
        st.tuples(st.integers(0, 19), st.sampled_from(["step", "step", "step", "kill", "leave", "wait"])), max_size=150
    )
)
def test_live_members_end_in_one_generation(acts: list[tuple[int, str]]) -> None:
    course = Course()
    clients: dict[int, Client] = {}
    generation = 0
    for number, act in acts:
        client = clients.setdefault(number, Client(course))
        match act:
            case "step":
                client.step()
            case "kill":
                del clients[number]
            case "leave":
                if client.member_id:
                    course.take(course.group.leave(course.now, client.member_id, None)[1])
                del clients[number]
            case "wait":
                course.wait(1.5)
        assert course.group.generation >= generation, "generations never go back"
        generation = course.group.generation
    for _ in range(120):
        for client in clients.values():
            client.step()
        course.wait(1.0)
    if not clients:
        assert course.group.is_unused
        return
    assert course.group.state is GroupState.STABLE
    assert sorted(course.group.members) == sorted(client.member_id for client in clients.values())
    assert {client.generation for client in clients.values()} == {course.group.generation}
    assert {client.assignment for client in clients.values()} == {
        client.member_id.encode() for client in clients.values()
    }


def test_a_leader_that_joins_again_wants_to_assign_anew() -> None:
    course = Course()
    joined = course.stable(2)
    leader = next(item for item in joined if item.members)
    follower = next(item for item in joined if not item.members)
    assert course.answers[course.join(follower.member_id)].generation == 1, "a follower learns what it missed"
    ticket = course.join(leader.member_id)
    assert ticket not in course.answers
    again = course.join(follower.member_id)
    assert {course.answers[item].generation for item in (ticket, again)} == {2}


def test_live_member_that_never_rejoins_blocks_nothing() -> None:
    course = Course()
    first, second = course.stable(2)
    _, ticket = course.named(session_seconds=1_000.0)
    course.join(first.member_id)
    for _ in range(7):
        course.group.heartbeat(course.now, second.member_id, None, 1)
        course.wait(REBALANCE / 6)
    assert course.answers[ticket].generation == 2
    assert second.member_id not in course.group.members


def test_who_leaves_before_it_joined_is_not_waited_for() -> None:
    course = Course()
    _, ticket = course.named()
    answer = course.answers[course.join()]
    course.wait(DELAY)
    assert ticket not in course.answers, "one more has said that it comes"
    error, replies = course.group.leave(course.now, answer.member_id, None)
    course.take(replies)
    assert error == OK
    assert course.answers[ticket].error == OK


def test_returning_static_member_gets_new_session_and_host() -> None:
    course = Course()
    ticket = course.join(instance_id="i")
    course.wait(DELAY)
    course.sync(course.answers[ticket], instance_id="i")
    later = {"session_seconds": 300.0, "rebalance_seconds": 77.0, "client_id": "new", "host": "/10.0.0.2"}
    again = course.answers[course.join(instance_id="i", **later)]
    assert (again.error, course.group.generation) == (OK, 1)
    member = course.group.members[again.member_id]
    assert {name: getattr(member, name) for name in later} == later
    course.wait(SESSION + 1)
    assert course.group.heartbeat(course.now, again.member_id, "i", 1) == OK
    course.wait(301.0)
    assert course.group.is_unused


def test_absent_static_members_stay_until_session_end() -> None:
    course = Course()
    tickets = [course.join(instance_id=name, session_seconds=1800.0) for name in "ab"]
    course.wait(DELAY)
    joined = [course.answers[ticket] for ticket in tickets]
    for answer, name in sorted(zip(joined, "ab", strict=True), key=lambda pair: bool(pair[0].members)):
        course.sync(answer, instance_id=name)
    members = set(course.group.members)
    dynamic, _ = course.named()
    course.take(course.group.leave(course.now, dynamic, None)[1])
    assert course.group.state is GroupState.PREPARING
    course.wait(10 * REBALANCE)
    assert set(course.group.members) == members
    tickets = [
        course.join(answer.member_id, instance_id=name, session_seconds=1800.0)
        for answer, name in zip(joined, "ab", strict=True)
    ]
    assert {course.answers[ticket].generation for ticket in tickets} == {2}
    dynamic, _ = course.named()
    course.take(course.group.leave(course.now, dynamic, None)[1])
    course.wait(1801.0)
    assert course.group.is_unused


@pytest.mark.parametrize("rebalance", [0.0, REBALANCE])
def test_waiting_for_static_members_looks_once_a_second(rebalance: float) -> None:
    course = Course()
    ticket = course.join(instance_id="i", session_seconds=100.0, rebalance_seconds=rebalance)
    course.wait(DELAY)
    course.sync(course.answers[ticket], instance_id="i")
    dynamic, _ = course.named(rebalance_seconds=rebalance)
    course.take(course.group.leave(course.now, dynamic, None)[1])
    looks = 0
    until = course.now + 50.0
    while course.group.deadline() <= until:
        course.now = max(course.now, course.group.deadline())
        course.take(course.group.tick(course.now))
        looks += 1
    assert looks <= 51


def test_the_join_of_a_new_member_waits_for_five_minutes_at_most() -> None:
    course = Course()
    first, second = course.stable(2)
    member_id, ticket = course.named(rebalance_seconds=1000.0)
    course.join(first.member_id, rebalance_seconds=1000.0)

    def beat(seconds: float) -> None:
        until = course.now + seconds
        while course.now < until:
            course.group.heartbeat(course.now, second.member_id, None, 1)
            course.wait(SESSION / 2)

    beat(290.0)
    assert member_id in course.group.members
    beat(20.0)
    assert course.answers[ticket].error == ErrorCode.unknown_member_id
    assert member_id not in course.group.members
    assert first.member_id in course.group.members, "it was in a generation, and waits on"
