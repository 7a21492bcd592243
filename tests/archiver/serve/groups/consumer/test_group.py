"""A group that assigns by itself, as its members go through joins, kills, pauses, lost answers and changing topics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from archiver.serve.groups.consumer import (
    MOST_BYTES,
    Beat,
    Beaten,
    ConsumerGroup,
    ConsumerState,
    GroupTimes,
    KnownTopic,
    Place,
    Topics,
)

OK = ErrorCode.none
TIMES = GroupTimes(interval=1.0, session=10.0)
REBALANCE = 20.0
ORDERS, REFUNDS = UUID(int=1), UUID(int=2)


def topics(**partitions: int) -> Topics:
    ids = {"orders": ORDERS, "refunds": REFUNDS}
    return {name: KnownTopic(ids[name], count) for name, count in partitions.items()}


def places(topic: UUID, *numbers: int) -> frozenset[Place]:
    return frozenset((topic, each) for each in numbers)


@dataclass(slots=True)
class Course:
    """A group, its time and the topics."""

    topics: Topics = field(default_factory=lambda: topics(orders=4))
    group: ConsumerGroup = field(default_factory=lambda: ConsumerGroup("g", TIMES))
    now: float = 0.0

    def beat(self, member_id: str, epoch: int, **values: Any) -> Beaten:
        return self.group.beat(self.now, Beat(member_id=member_id, epoch=epoch, **values), self.topics)

    def join(self, member_id: str, **changes: Any) -> Beaten:
        values: dict[str, Any] = {
            "rebalance_seconds": REBALANCE,
            "names": frozenset({"orders"}),
            "owned": frozenset(),
            **changes,
        }
        return self.beat(member_id, 0, **values)

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while self.group.deadline() <= until:
            self.now = max(self.now, self.group.deadline())
            self.group.tick(self.now)
        self.now = until

    def two(self) -> None:
        """Members a and b with two partitions each, at epoch 2."""
        self.beat("a", 1, owned=self.join("a").assigned)
        self.join("b")
        kept = self.beat("a", 1).assigned
        assert kept is not None
        self.beat("a", 1, owned=kept)
        self.beat("b", 2, owned=self.beat("b", 2).assigned)
        assert self.group.state is ConsumerState.STABLE


def test_the_first_member_gets_everything() -> None:
    course = Course()
    told = course.join("a")
    assert (told.error, told.epoch, told.assigned) == (OK, 1, places(ORDERS, 0, 1, 2, 3))
    assert course.group.state is ConsumerState.STABLE
    assert course.beat("a", 1).assigned == told.assigned, "it hasn't said that it knows"
    assert course.beat("a", 1, owned=told.assigned).assigned is None
    assert course.beat("a", 1).assigned is None, "nothing has changed"


def test_a_partition_is_given_only_after_its_owner_said_that_it_gave_it_up() -> None:
    course = Course()
    course.beat("a", 1, owned=course.join("a").assigned)
    assert course.join("b").assigned == frozenset()
    told = course.beat("a", 1)
    assert told.epoch == 1, "its epoch rises when it has given up"
    assert told.assigned is not None
    assert len(told.assigned) == 2
    assert course.beat("b", 2).assigned is None, "not yet"
    assert course.beat("a", 1).assigned == told.assigned, "the answer may have been lost"
    assert course.beat("a", 1, owned=told.assigned).epoch == 2
    given = course.beat("b", 2).assigned
    assert given == places(ORDERS, 0, 1, 2, 3) - told.assigned
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
def test_a_member_at_another_epoch_is_fenced(epoch: int, owned: frozenset[Place] | None) -> None:
    course = Course()
    course.two()
    assert course.beat("a", epoch, owned=owned).error == ErrorCode.fenced_member_epoch
    assert course.join("a").error == OK, "it begins again"


def test_a_member_that_missed_its_epoch_is_told_again() -> None:
    course = Course()
    course.two()
    held = course.group.members["a"].assigned
    for owned in (held, None):
        told = course.beat("a", 1, owned=owned)
        assert (told.error, told.epoch, told.assigned) == (OK, 2, held)


def test_partitions_that_a_member_makes_up_take_no_memory_and_it_is_told_its_own() -> None:
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
    held = course.beat("b", 2, instance_id="i").assigned
    refused = course.join("c", instance_id="i")
    assert refused.error == ErrorCode.unreleased_instance_id
    assert course.beat("b", -2, instance_id="i").epoch == -2
    course.wait(TIMES.session / 2)
    assert course.beat("a", 2).assigned is None, "nothing moves while it is away"
    told = course.join("c", instance_id="i")
    assert (told.error, told.epoch, told.assigned) == (OK, 2, held)
    assert course.beat("b", 2, instance_id="i").error == ErrorCode.fenced_instance_id
    assert course.beat("b", -1, instance_id="i").error == ErrorCode.fenced_instance_id


def test_a_static_member_that_stays_away_loses_its_place() -> None:
    course = Course()
    course.join("a", instance_id="i")
    course.beat("a", -2, instance_id="i")
    course.wait(TIMES.session + 1)
    assert course.group.is_unused


def test_what_is_kept_for_a_static_member_is_no_more_than_its_share() -> None:
    course = Course()
    held = course.join("a", instance_id="i").assigned
    assert held is not None
    course.beat("a", -2, instance_id="i")
    given = course.join("b").assigned
    assert given is not None
    assert len(given) == 2, "nobody reads them, so nobody has to give them up"
    assert course.join("c", instance_id="i").assigned == held - given


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
    told = course.beat("a", 2, pattern="ref.*")
    assert told.assigned == places(REFUNDS, 0)


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
    told = course.beat("a", epoch, **whole)
    assert told.error == error
    assert told.message
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


@dataclass(slots=True)
class Client:
    """A client as it should be. What it was told takes it a step to carry out, and then it says what it holds."""

    course: Course
    name: str
    instance: str | None = None
    epoch: int = 0
    held: frozenset[Place] = frozenset()
    told: frozenset[Place] | None = None
    said: frozenset[Place] | None = None
    names: frozenset[str] = frozenset({"orders", "refunds"})
    pattern: str = ""
    again: tuple[int, dict[str, Any]] | None = None

    def carry_out(self) -> None:
        if self.told is not None:
            self.held, self.told = self.told, None

    def beat(self, *, loses: str = "") -> None:
        """Send a heartbeat; the request or its answer may be lost, and then the next one says everything.

        Where the answer comes too late, the same request is sent once more, as librdkafka does.
        """
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
NAMES = [frozenset(each) for each in ({"orders"}, {"refunds"}, {"orders", "refunds"}, ())]
PATTERNS = {"": set(), "ord.*": {"orders"}, ".*": {"orders", "refunds"}, "none": set()}


@dataclass(slots=True)
class Crowd:
    """The clients of a group, and what happens to them."""

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
        for each in self.clients.values():
            each.beat()

    def settle(self) -> None:
        """Let all go on until the sessions of those that died are over, and what they held is given to others."""
        for turn in range(90):
            for client in self.clients.values():
                client.beat()
                check(self.course, self.clients.values())
                client.carry_out()
                check(self.course, self.clients.values())
            self.course.wait(1.0 if turn else TIMES.session / 2)


@given(st.lists(acts, max_size=150), st.integers(1, 20))
def test_no_partition_has_two_readers_and_in_the_end_each_has_one(
    played: list[tuple[int, str, int]], size: int
) -> None:
    crowd = Crowd()
    for number, act, choice in played:
        crowd.play(number % size, act, choice)
        check(crowd.course, crowd.clients.values())
    crowd.settle()
    course, clients = crowd.course, crowd.clients.values()
    assert sorted(course.group.members) == sorted(each.name for each in clients), "no stuck member"
    known = course.topics
    wanted = {each.name: {name for name in known if name in each.names | PATTERNS[each.pattern]} for each in clients}
    everything = {
        (known[name].topic_id, number)
        for name in set().union(*wanted.values())
        for number in range(known[name].partitions)
    }
    assert sorted(place for each in clients for place in each.held) == sorted(everything), "everything is assigned"
    for each in clients:
        assert {topic for topic, _ in each.held} <= {known[name].topic_id for name in wanted[each.name]}
        assert each.epoch == course.group.epoch
    assert course.group.state is (ConsumerState.STABLE if clients else ConsumerState.EMPTY)


def check(course: Course, clients: Any) -> None:
    """No member of the group reads what another one reads, or holds in the eyes of the group."""
    members = course.group.members
    reading: dict[Place, str] = {}
    for client in clients:
        member = members.get(client.name)
        if member is None or (client.epoch != 0 and client.epoch not in (member.epoch, member.previous_epoch)):
            continue  # it will be told to begin again, and its commits are refused
        for place in client.held:
            assert place not in reading, f"{client.name} and {reading[place]} read {place}"
            reading[place] = client.name
    holders: dict[Place, str] = {}
    for name, member in members.items():
        assert not member.assigned & member.revoking
        for place in member.assigned | member.revoking:
            assert place not in holders, f"{name} and {holders[place]} hold {place}"
            holders[place] = name


@dataclass(frozen=True, slots=True, eq=False)
class Rights:
    """What somebody may do: each object is one state of it."""

    seen: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()

    def sees(self, topic: str) -> bool:
        return topic in self.seen

    def reads(self, topic: str) -> bool:
        return topic in self.read


BOTH = frozenset({"orders", "refunds"})


def test_a_pattern_never_brings_topics_that_a_member_may_not_read_also_not_later() -> None:
    course = Course(topics=topics(orders=2))
    course.join("all", names=None, pattern=".*", rights=None)
    some = Rights(seen=BOTH, read=frozenset({"refunds"}))
    assert course.join("some", names=None, pattern=".*", rights=some).assigned == frozenset()
    course.topics = topics(orders=2, refunds=2)
    told = course.beat("some", 2, rights=some)
    assert told.assigned
    assert {topic for topic, _ in told.assigned} == {REFUNDS}
    told = course.beat("all", 1, rights=None)
    course.topics = topics(orders=8, refunds=2)
    course.beat("all", told.epoch, rights=None)
    assert {topic for topic, _ in course.group.targets["some"]} == {REFUNDS}


@pytest.mark.parametrize("subscription", [{"names": BOTH}, {"names": None, "pattern": ".*"}])
def test_rights_that_are_taken_away_take_partitions_away(subscription: dict[str, Any]) -> None:
    course = Course(topics=topics(orders=1, refunds=1))
    both = Rights(seen=BOTH, read=BOTH)
    joined = course.join("a", rights=both, **subscription)
    assert joined.assigned == places(ORDERS, 0) | places(REFUNDS, 0)
    assert course.beat("a", joined.epoch, rights=both, owned=joined.assigned).assigned is None, "nothing changed"
    one = Rights(seen=frozenset({"orders"}), read=frozenset({"orders"}))
    told = course.beat("a", joined.epoch, rights=one)
    assert told.assigned == places(ORDERS, 0)
    told = course.beat("a", joined.epoch, rights=one, owned=places(ORDERS, 0))
    assert told.epoch > joined.epoch
    again = course.beat("a", told.epoch, rights=both)
    assert again.assigned == places(ORDERS, 0) | places(REFUNDS, 0)


def test_members_that_name_more_than_a_group_has_room_for_are_refused() -> None:
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


def test_who_takes_the_place_of_a_static_member_counts_in_its_stead() -> None:
    course = Course()
    names = frozenset({"n" * (MOST_BYTES // 2 + 1)})
    joined = course.join("a", instance_id="i", names=names)
    assert course.beat("a", -2, instance_id="i").error is OK
    assert course.join("b", instance_id="i", names=names).error is OK
    assert course.group.size == MOST_BYTES // 2 + 1
    assert joined.error is OK


MEMBERS, PARTITIONS = 20, 24
MOST_BEATS = 5
"""One to hear of the change, one to say that partitions were given up, and one to get others; and two for the order."""


def beats_until_shared(course: Course, clients: list[Client]) -> int:
    """Let all members send heartbeats in turns until all is shared; how many each of them sent."""
    for beats in range(1, 30):
        for each in clients:
            each.beat()
            each.carry_out()
        course.wait(TIMES.interval)
        held = sorted(place for each in clients for place in each.held)
        is_shared = len(held) == PARTITIONS and len(set(held)) == PARTITIONS
        if is_shared and all(each.held for each in clients) and course.group.state is ConsumerState.STABLE:
            return beats
    pytest.fail("the group doesn't settle")


def bury(course: Course, client: Client, clients: list[Client]) -> None:
    """Let one die, and the others go on until its session is over."""
    clients.remove(client)
    for _ in range(int(TIMES.session / TIMES.interval) + 1):
        assert client.name in course.group.members
        for each in clients:
            each.beat()
        course.wait(TIMES.interval)
        if client.name not in course.group.members:
            return


def test_a_member_that_never_heard_of_a_partition_that_it_must_give_up_hears_of_it_first() -> None:
    """It would have nothing to say otherwise: it never had it, and its heartbeats say that nothing changed."""
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
    """librdkafka sends the same request again, which doesn't say everything."""
    course = Course(topics=topics(orders=PARTITIONS))
    clients = [Client(course, f"m{number:02}") for number in range(MEMBERS)]
    assert beats_until_shared(course, clients) <= MOST_BEATS
    clients += [Client(course, "n0"), Client(course, "n1")]
    clients[-1].beat()
    for _ in range(3):
        for each in clients:
            each.beat(loses="time")
        course.wait(TIMES.interval)
    assert beats_until_shared(course, clients) <= MOST_BEATS + 1


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_a_group_settles_within_a_few_heartbeats(assignor: str) -> None:
    course = Course(topics=topics(orders=PARTITIONS))
    clients = [Client(course, f"m{number:02}") for number in range(MEMBERS)]
    for each in clients:
        each.beat()
        course.group.members[each.name].assignor = assignor
    assert beats_until_shared(course, clients) <= MOST_BEATS
    for place in (0, MEMBERS // 2, -1):
        bury(course, clients[place], clients)
        assert beats_until_shared(course, clients) <= MOST_BEATS
        clients.append(Client(course, f"n{place:02}"))
        assert beats_until_shared(course, clients) <= MOST_BEATS
    for each in clients[:3]:  # these come back after they were let go
        bury(course, each, clients)
        clients.append(each)
        assert beats_until_shared(course, clients) <= MOST_BEATS
