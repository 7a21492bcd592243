"""Consumer groups under failures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from archiver.serve.groups.consumer import (
    ConsumerGroup,
    ConsumerState,
    PartitionId,
)
from tests.support.kafka.consumer_group import OK, ORDERS, REBALANCE, TIMES, Course, places, topics


@dataclass(slots=True)
class Client:
    course: Course
    name: str
    instance: str | None = None
    epoch: int = 0
    held: frozenset[PartitionId] = frozenset()
    told: frozenset[PartitionId] | None = None
    said: frozenset[PartitionId] | None = None
    names: frozenset[str] = frozenset({"orders", "refunds"})
    pattern: str = ""
    again: tuple[int, dict[str, Any]] | None = None

    def carry_out(self) -> None:
        if self.told is not None:
            self.held, self.told = self.told, None

    def beat(self, *, loses: str = "") -> None:
        """The late request is repeated, as librdkafka does."""
        epoch, values = self.again or (self.epoch, self._said())
        self.again = (epoch, values) if loses == "time" else None
        if loses == "request":
            self.said = None
            return
        answer = self.course.beat(self.name, epoch, **values)
        if loses == "time":
            return
        if loses == "answer":
            self.said = None
            self.told = None  # it carries out nothing old once it knows that it missed something
            return
        match answer.error:
            case ErrorCode.none:
                self.epoch = answer.epoch
                if answer.assigned is not None:
                    self.told = answer.assigned
                    self.said = None if answer.assigned == self.held else self.said
            case ErrorCode.unreleased_instance_id:
                self.said = None
            case _:
                self.epoch, self.held, self.told, self.said = 0, frozenset(), None, None

    def _said(self) -> dict[str, Any]:
        is_full = self.said is None
        values: dict[str, Any] = {"instance_id": self.instance}
        if is_full:
            values |= {"rebalance_seconds": REBALANCE, "names": self.names, "pattern": self.pattern}
        if is_full or self.held != self.said:
            values["owned"] = self.held
        self.said = self.held
        return values

    def leave(self, *, epoch: int = -1) -> None:
        self.course.beat(self.name, epoch, instance_id=self.instance)


ACTS = [
    "beat",
    "beat",
    "beat",
    "beat",
    "apply",
    "apply",
    "kill",
    "leave",
    "away",
    "lost",
    "dropped",
    "late",
    "wait",
    "sleep",
]
acts = st.tuples(
    st.integers(0, 19), st.sampled_from([*ACTS, "names", "pattern", "topics", "restart"]), st.integers(0, 3)
)


TOPICS = [topics(orders=6, refunds=3), topics(orders=7), topics(refunds=2), topics()]
NAMES = [frozenset(chosen) for chosen in ({"orders"}, {"refunds"}, {"orders", "refunds"}, ())]
PATTERNS = {"": set(), "ord.*": {"orders"}, ".*": {"orders", "refunds"}, "none": set()}


@dataclass(slots=True)
class Crowd:
    course: Course = field(default_factory=lambda: Course(topics=TOPICS[0]))
    clients: dict[int, Client] = field(default_factory=dict)
    born: int = 0

    def play(self, slot: int, act: str, choice: int) -> None:
        client = self.clients.get(slot)
        if client is None:
            self.born += 1
            client = Client(self.course, f"m{self.born}", instance=f"i{slot}" if slot % 4 == 0 else None)
            self.clients[slot] = client
        match act:
            case "beat" | "lost" | "dropped" | "late":
                client.beat(loses={"lost": "answer", "dropped": "request", "late": "time"}.get(act, ""))
            case "apply":
                client.carry_out()
            case "kill" | "leave" | "away":
                if act != "kill":
                    client.leave(epoch=-2 if act == "away" and client.instance else -1)
                del self.clients[slot]
            case "wait":
                self.course.wait(1.0)
            case "sleep":
                self.beat()
                self.course.wait(TIMES.session - 1)
            case _:
                self._change(client, act, choice)

    def _change(self, client: Client, act: str, choice: int) -> None:
        match act:
            case "names":
                client.names, client.said = NAMES[choice], None
            case "pattern":
                client.pattern, client.said = list(PATTERNS)[choice], None
            case "topics":
                self.course.topics = TOPICS[choice]
            case "restart":
                self.course.group = ConsumerGroup("g", TIMES)
                self.beat()

    def beat(self) -> None:
        for client in self.clients.values():
            client.beat()

    def settle(self) -> None:
        for turn in range(90):
            for client in self.clients.values():
                client.beat()
                check(self.course, self.clients.values())
                client.carry_out()
                check(self.course, self.clients.values())
            self.course.wait(1.0 if turn else TIMES.session / 2)


@given(st.lists(acts, max_size=150), st.integers(1, 20))
def test_each_partition_ends_with_exactly_one_reader(played: list[tuple[int, str, int]], size: int) -> None:
    crowd = Crowd()
    for number, act, choice in played:
        crowd.play(number % size, act, choice)
        check(crowd.course, crowd.clients.values())
    crowd.settle()
    course, clients = crowd.course, crowd.clients.values()
    assert sorted(course.group.members) == sorted(client.name for client in clients), "no stuck member"
    by_name = course.topics
    subscribed = {
        client.name: {name for name in by_name if name in client.names | PATTERNS[client.pattern]} for client in clients
    }
    everything = {
        (by_name[name].topic_id, number)
        for name in set().union(*subscribed.values())
        for number in range(by_name[name].partitions)
    }
    assert sorted(partition for client in clients for partition in client.held) == sorted(everything), (
        "everything is assigned"
    )
    for client in clients:
        assert {topic for topic, _ in client.held} <= {by_name[name].topic_id for name in subscribed[client.name]}
        assert client.epoch == course.group.epoch
    assert course.group.state is (ConsumerState.STABLE if clients else ConsumerState.EMPTY)


def check(course: Course, clients: Any) -> None:
    members = course.group.members
    reading: dict[PartitionId, str] = {}
    for client in clients:
        member = members.get(client.name)
        if member is None or (client.epoch != 0 and client.epoch not in (member.epoch, member.previous_epoch)):
            continue  # it will be told to begin again, and its commits are refused
        for partition in client.held:
            assert partition not in reading, f"{client.name} and {reading[partition]} read {partition}"
            reading[partition] = client.name
    holders: dict[PartitionId, str] = {}
    for name, member in members.items():
        assert not member.assigned & member.revoking
        for partition in member.assigned | member.revoking:
            assert partition not in holders, f"{name} and {holders[partition]} hold {partition}"
            holders[partition] = name


MEMBERS, PARTITIONS = 20, 24
MOST_BEATS = 5
"""One to hear of the change, one to say that partitions were given up, and one to get others; and two for the order."""


def beats_until_shared(course: Course, clients: list[Client]) -> int:
    for beats in range(1, 30):
        for client in clients:
            client.beat()
            client.carry_out()
        course.wait(TIMES.interval)
        assigned = sorted(partition for client in clients for partition in client.held)
        is_shared = len(assigned) == PARTITIONS and len(set(assigned)) == PARTITIONS
        if is_shared and all(client.held for client in clients) and course.group.state is ConsumerState.STABLE:
            return beats
    pytest.fail("the group doesn't settle")


def bury(course: Course, client: Client, clients: list[Client]) -> None:
    clients.remove(client)
    for _ in range(int(TIMES.session / TIMES.interval) + 1):
        assert client.name in course.group.members
        for chosen in clients:
            chosen.beat()
        course.wait(TIMES.interval)
        if client.name not in course.group.members:
            return


def test_member_first_hears_of_a_partition_it_must_revoke() -> None:
    """Its heartbeats would say that nothing changed."""
    course = Course()
    course.two()
    everything, own = places(ORDERS, 0, 1, 2, 3), places(ORDERS, 2, 3)
    assert course.group.members["b"].owned == own
    course.beat("a", -1)
    epoch = course.beat("b", 2).epoch  # all is b's, and this answer is lost
    course.join("aa", assignor="range")
    for _ in range(2):
        assert course.beat("b", epoch).assigned == everything
    assert course.beat("b", epoch, owned=everything).assigned == own
    assert course.beat("b", epoch, owned=own).epoch == course.group.epoch
    assert course.beat("aa", course.group.epoch).assigned == everything - own
    assert course.group.state is ConsumerState.STABLE


def test_who_never_says_that_it_knows_is_let_go() -> None:
    course = Course(topics=topics(orders=4))
    course.join("a")
    course.join("b")
    for _ in range(int(REBALANCE / 5)):
        assert course.beat("a", 1).error == OK
        assert course.beat("b", 2).assigned is None
        course.wait(5.0)
    assert course.beat("a", 1).error == ErrorCode.unknown_member_id
    assert course.beat("b", 2).assigned == places(ORDERS, 0, 1, 2, 3)


def test_members_whose_answers_come_too_late_hold_up_nobody() -> None:
    """librdkafka sends the same request again, which isn't full."""
    course = Course(topics=topics(orders=PARTITIONS))
    clients = [Client(course, f"m{number:02}") for number in range(MEMBERS)]
    assert beats_until_shared(course, clients) <= MOST_BEATS
    clients += [Client(course, "n0"), Client(course, "n1")]
    clients[-1].beat()
    for _ in range(3):
        for client in clients:
            client.beat(loses="time")
        course.wait(TIMES.interval)
    assert beats_until_shared(course, clients) <= MOST_BEATS + 1


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_a_group_settles_within_a_few_heartbeats(assignor: str) -> None:
    course = Course(topics=topics(orders=PARTITIONS))
    clients = [Client(course, f"m{number:02}") for number in range(MEMBERS)]
    for client in clients:
        client.beat()
        course.group.members[client.name].assignor = assignor
    assert beats_until_shared(course, clients) <= MOST_BEATS
    for index in (0, MEMBERS // 2, -1):
        bury(course, clients[index], clients)
        assert beats_until_shared(course, clients) <= MOST_BEATS
        clients.append(Client(course, f"n{index:02}"))
        assert beats_until_shared(course, clients) <= MOST_BEATS
    for client in clients[:3]:  # these come back after they were let go
        bury(course, client, clients)
        clients.append(client)
        assert beats_until_shared(course, clients) <= MOST_BEATS
