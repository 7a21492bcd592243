"""Every API, with and without rights.

A new API needs a guard in `apis.py`, and a line here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from archiver.access import Rule
from archiver.serve.kafka.apis import APIS, BEFORE_AUTHENTICATION
from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.guarded_door import GuardedDoor, come_in
from tests.support.servers.served_lake import ServedLake, Wire, request

NO_TOPIC = ErrorCode.topic_authorization_failed
NO_GROUP = ErrorCode.group_authorization_failed
REFUSED = ErrorCode.policy_violation
FOR_ANYBODY = "anybody"

STATED: dict[int, Any] = {
    0: NO_TOPIC,  # Produce: nobody may
    1: NO_TOPIC,
    2: NO_TOPIC,
    3: NO_TOPIC,
    8: NO_GROUP,
    9: NO_GROUP,
    10: NO_GROUP,
    11: NO_GROUP,
    12: NO_GROUP,
    13: NO_GROUP,
    14: NO_GROUP,
    15: NO_GROUP,
    16: None,  # ListGroups: an empty list
    17: ErrorCode.illegal_sasl_state,
    18: FOR_ANYBODY,
    19: REFUSED,
    20: REFUSED,
    21: REFUSED,
    22: ErrorCode.transactional_id_authorization_failed,
    23: NO_TOPIC,
    32: NO_TOPIC,
    33: REFUSED,
    36: ErrorCode.illegal_sasl_state,
    37: REFUSED,
    42: NO_GROUP,
    44: REFUSED,
    47: NO_GROUP,
    60: FOR_ANYBODY,
    68: NO_GROUP,
    69: NO_GROUP,
    71: FOR_ANYBODY,
    72: FOR_ANYBODY,
    75: NO_TOPIC,
}
"""What is told to a principal without rights."""
VERSIONS = [(api.key, version) for api in APIS.values() for version in range(api.least, api.most + 1)]
BY_ID = {
    (key, version)
    for key, least in ((1, 13), (8, 10), (9, 10))
    for key_, version in VERSIONS
    if key == key_ and version >= least
}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLake]:
    rules = [
        Rule.parse("User:bob", "allow", ("all",), ("*",), ("*",)),
        Rule.parse("User:alice", "allow", ("read",), ("mine-*",), ("mine-*",)),
    ]
    lake = archived(tmp_path_factory.mktemp("lake"), build([Record(value=b"secret")] * 5), end=5)
    with ServedLake(lake, door=GuardedDoor(rules=rules)) as served:
        yield served


@pytest.fixture(scope="module")
def alice(endpoint: ServedLake) -> Iterator[Wire]:
    with Wire(endpoint.port) as client:
        come_in(client)
        yield client


@pytest.fixture(scope="module")
def bob(endpoint: ServedLake) -> Iterator[Wire]:
    with Wire(endpoint.port) as client:
        come_in(client, "bob")
        yield client


def asked(endpoint: ServedLake, api_key: int, version: int, *, topic: str = "orders", group: str = "theirs") -> Any:
    values: dict[str, Any] = {
        "name": topic,
        "topic": topic,
        "group_id": group,
        "key": group,
        "key_type": 0,
        "coordinator_keys": (group,),
        "groups_names": (group,),
        "topic_id": endpoint.topics.open[0].topic_id if (api_key, version) in BY_ID else None,
        "group_ids": (group,),
        "subscribed_topic_names": (topic,),
        "subscribed_topic_regex": None,
        "server_assignor": None,
        "topic_partitions": None,
        "resource_type": 2,
        "resource_name": topic,
        "topic_names": (topic,),
        "cursor": None,
        "forgotten_topics_data": (),
        "replica_id": -1,
        "session_id": 0,
        "session_epoch": -1,
        "generation_id_or_member_epoch": -1,
        "member_id": None if api_key == 9 else "",
        "member_epoch": -1,
        "states_filter": (),
        "types_filter": (),
        "partition_indexes": (0,),
        "partition": 0,
        "partition_index": 0,
    }
    if api_key == 15:
        values["groups"] = (group,)
    return request(api_key, version, **values)


def found_in(message: Any) -> Iterator[Any]:
    for name in message.__dataclass_fields__:
        value = getattr(message, name)
        for item in value if isinstance(value, tuple) else (value,):
            if hasattr(item, "__dataclass_fields__"):
                yield from found_in(item)
            else:
                yield item


def errors_in(message: Any) -> set[ErrorCode]:
    return {item for item in found_in(message) if isinstance(item, ErrorCode)} - {ErrorCode.none}


def test_every_api_says_who_may_ask_for_what() -> None:
    assert set(STATED) == set(APIS), "say in STATED what a principal without rights is told"
    assert all(api.guard.__doc__ for api in APIS.values())
    assert {key for key, stated in STATED.items() if key in BEFORE_AUTHENTICATION} == {17, 18, 36}


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_without_a_right_nothing_is_told(endpoint: ServedLake, alice: Wire, api_key: int, version: int) -> None:
    answer = alice.ask(asked(endpoint, api_key, version))
    stated = STATED[api_key]
    if stated is FOR_ANYBODY:
        return
    assert errors_in(answer) == ({stated} if stated else set())
    assert b"secret" not in repr(answer).encode()
    assert endpoint.topics.open[0].topic_id not in set(found_in(answer)) or (api_key, version) in BY_ID


@pytest.mark.parametrize(("api_key", "version"), [each for each in VERSIONS if each not in BY_ID])
def test_what_may_not_be_seen_is_as_what_is_not_there(
    endpoint: ServedLake, alice: Wire, api_key: int, version: int
) -> None:
    if STATED[api_key] is FOR_ANYBODY:
        return
    hidden = alice.ask(asked(endpoint, api_key, version))
    nowhere = alice.ask(asked(endpoint, api_key, version, topic="oRdErS"))
    assert repr(hidden) == repr(nowhere).replace("oRdErS", "orders")


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_with_all_rights_no_right_is_missing(endpoint: ServedLake, bob: Wire, api_key: int, version: int) -> None:
    if STATED[api_key] in (NO_GROUP, NO_TOPIC) and api_key != 0:
        assert not errors_in(bob.ask(asked(endpoint, api_key, version))) & {NO_GROUP, NO_TOPIC}


@pytest.mark.parametrize("version", range(14))
def test_only_what_may_be_described_is_listed(alice: Wire, bob: Wire, version: int) -> None:
    everything = () if version == 0 else None
    assert alice.ask(request(3, version, topics=everything)).topics == ()
    assert [topic.name for topic in bob.ask(request(3, version, topics=everything)).topics] == ["orders"]


def test_pages_of_all_topics_leave_out_what_may_not_be_seen(alice: Wire, bob: Wire) -> None:
    assert alice.ask(request(75, 0, topics=(), cursor=None, response_partition_limit=9)).topics == ()
    assert len(bob.ask(request(75, 0, topics=(), cursor=None, response_partition_limit=9)).topics) == 1


def test_an_id_tells_no_name(endpoint: ServedLake, alice: Wire) -> None:
    topic_id = endpoint.topics.open[0].topic_id
    (topic,) = alice.ask(request(3, 12, topic_id=topic_id, name=None)).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (NO_TOPIC, None, topic_id)


def test_groups_of_others_are_not_listed(endpoint: ServedLake, alice: Wire, bob: Wire) -> None:
    for group in ("mine-1", "theirs"):
        committed = asked(endpoint, 8, 2, group=group)
        assert not errors_in(bob.ask(committed))
    seen, every = (
        {group.group_id for group in wire.ask(request(16, 4, states_filter=())).groups} for wire in (alice, bob)
    )
    assert {"mine-1", "theirs"} <= every
    assert seen == {group_id for group_id in every if group_id.startswith("mine-")}, "the tests beside make groups, too"


@pytest.mark.parametrize("version", [v for key, v in VERSIONS if key == 9])
def test_offsets_of_topics_that_may_not_be_seen(endpoint: ServedLake, alice: Wire, bob: Wire, version: int) -> None:
    assert not errors_in(bob.ask(asked(endpoint, 8, 2, group="mine-1")))
    answer = alice.ask(asked(endpoint, 9, version, group="mine-1"))
    assert errors_in(answer) == {NO_TOPIC}
    if version >= 2:
        everything = {"topics": None, "group_id": "mine-1", "member_id": None, "member_epoch": -1}
        answer = alice.ask(request(9, version, **everything))
        assert (answer.groups[0] if version >= 8 else answer).topics == ()


@pytest.mark.parametrize("version", [v for key, v in VERSIONS if key == 8])
def test_offsets_are_committed_for_topics_that_may_be_read(endpoint: ServedLake, alice: Wire, version: int) -> None:
    assert errors_in(alice.ask(asked(endpoint, 8, version, group="mine-2"))) == {NO_TOPIC}
    assert "mine-2" not in endpoint.offsets.groups()


def test_reading_a_group_is_not_deleting_it(endpoint: ServedLake, alice: Wire, bob: Wire) -> None:
    assert not errors_in(bob.ask(asked(endpoint, 8, 2, group="mine-3")))
    assert errors_in(alice.ask(asked(endpoint, 42, 2, group="mine-3"))) == {NO_GROUP}
    assert errors_in(alice.ask(asked(endpoint, 47, 0, group="mine-3"))) == {NO_GROUP}
    assert not errors_in(bob.ask(asked(endpoint, 42, 2, group="mine-3")))


def beat(wire: Wire, member: str, *, names: tuple[str, ...] | None = None, pattern: str | None = None) -> Any:
    return wire.ask(
        request(
            68,
            1,
            group_id="mine-4",
            member_id=member,
            member_epoch=0,
            instance_id=None,
            rack_id=None,
            rebalance_timeout=timedelta(minutes=1),
            subscribed_topic_names=names,
            subscribed_topic_regex=pattern,
            server_assignor=None,
            topic_partitions=(),
        )
    )


def test_members_get_no_topics_that_they_may_not_see(alice: Wire, bob: Wire) -> None:
    assert beat(alice, "a", names=("orders",)).error_code == NO_TOPIC
    seen = beat(alice, "a", pattern=".*")
    assert (seen.error_code, seen.assignment.topic_partitions) == (ErrorCode.none, ())
    (assigned,) = beat(bob, "b", pattern=".*").assignment.topic_partitions
    assert assigned.partitions == (0,)
    asked_for = request(69, 1, group_ids=("mine-4",))
    (group,) = alice.ask(asked_for).groups
    assert (group.error_code, group.members) == (NO_TOPIC, ()), "a member reads what alice may not see"
    (group,) = bob.ask(asked_for).groups
    assert {member.member_id for member in group.members} == {"a", "b"}


def test_some_of_a_request_is_answered_and_some_refused(alice: Wire) -> None:
    from kio.schema.list_offsets.v7.request import ListOffsetsPartition, ListOffsetsTopic

    partition = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
    asked_for = tuple(ListOffsetsTopic(name=name, partitions=(partition,)) for name in ("orders", "mine-none"))
    topics = alice.ask(request(2, 7, topics=asked_for)).topics
    assert {topic.name: topic.partitions[0].error_code for topic in topics} == {
        "orders": NO_TOPIC,
        "mine-none": ErrorCode.unknown_topic_or_partition,
    }


def test_metadata_of_hidden_topic_reveals_no_other_topic(tmp_path: Path) -> None:
    """In version 0, no topics stand for all of them."""
    lake = archived(tmp_path / "lake", build([Record(value=b"x")] * 5), end=5)
    rules = [Rule.parse("User:alice", "allow", ("read",), ("orders",), ())]
    with ServedLake(lake, door=GuardedDoor(rules=rules)) as endpoint, Wire(endpoint.port) as wire:
        come_in(wire)
        for version in range(14):
            topics = wire.ask(request(3, version, name="theirs", topic_id=None)).topics
            assert [(entry.name, entry.error_code) for entry in topics] == [("theirs", NO_TOPIC)], version
        assert [topic.name for topic in wire.ask(request(3, 0, topics=())).topics] == ["orders"]
