"""Consumer-protocol groups over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.served_lake import ServedLake, Wire, request

ORDERS = "orders"
OK = ErrorCode.none


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[ServedLake]:
    with ServedLake(archived(tmp_path / "lake", build([Record(value=b"x")] * 10), end=10)) as served:
        yield served


@pytest.fixture
def wire(endpoint: ServedLake) -> Iterator[Wire]:
    with Wire(endpoint.port) as client:
        yield client


def beat(wire: Wire, member_id: str, epoch: int, *, version: int = 1, **changes: Any) -> Any:
    silent = {
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout": timedelta(milliseconds=-1),
        "subscribed_topic_names": None,
        "subscribed_topic_regex": None,
        "server_assignor": None,
        "topic_partitions": None,
    }
    values = {"group_id": "g", "member_id": member_id, "member_epoch": epoch}
    if "partitions" in changes:
        del silent["topic_partitions"]
    return wire.ask(request(68, version, **{**silent, **values, **changes}))


def join(wire: Wire, member_id: str, **changes: Any) -> Any:
    whole = {"rebalance_timeout": timedelta(seconds=9), "subscribed_topic_names": (ORDERS,), "topic_partitions": ()}
    return beat(wire, member_id, 0, **{**whole, **changes})


def commit(wire: Wire, *, version: int = 9, **changes: Any) -> ErrorCode:
    values = {
        "group_id": "g",
        "name": ORDERS,
        "partition_index": 0,
        "committed_offset": 3,
        "committed_metadata": "",
        "committed_leader_epoch": -1,
        "group_instance_id": None,
    }
    error: ErrorCode = wire.ask(request(8, version, **values | changes)).topics[0].partitions[0].error_code
    return error


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_goes_on_and_leaves(wire: Wire, endpoint: ServedLake, version: int) -> None:
    answer = join(wire, "a", version=version)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (OK, "a", 1)
    assert answer.heartbeat_interval == timedelta(seconds=5)
    (given,) = answer.assignment.topic_partitions
    assert (given.topic_id, given.partitions) == (endpoint.topics.open[0].topic_id, (0,))
    assert beat(wire, "a", 1, version=version).assignment == answer.assignment, "until it says that it knows"
    owned = {"topic_id": given.topic_id, "partitions": (0,)}
    assert beat(wire, "a", 1, version=version, **owned).assignment is None
    assert beat(wire, "a", 1, version=version).assignment is None
    assert beat(wire, "a", -1, version=version).member_epoch == -1
    assert beat(wire, "a", 1, version=version).error_code == ErrorCode.unknown_member_id


def test_a_pattern_is_read_and_a_wrong_one_refused(wire: Wire) -> None:
    refused = join(wire, "a", subscribed_topic_names=None, subscribed_topic_regex="(")
    assert refused.error_code == ErrorCode.invalid_regular_expression
    assert "(" in refused.error_message
    answer = join(wire, "a", subscribed_topic_names=None, subscribed_topic_regex="ord.*")
    assert len(answer.assignment.topic_partitions) == 1


def test_tools_see_the_group_with_its_protocol(wire: Wire) -> None:
    join(wire, "a", server_assignor="range")
    (listed,) = wire.ask(request(16, 5, states_filter=(), types_filter=("consumer",))).groups
    assert (listed.group_id, listed.group_state, listed.group_type) == ("g", "Stable", "Consumer")
    assert wire.ask(request(16, 5, states_filter=(), types_filter=("classic",))).groups == ()
    described, unknown = wire.ask(request(69, 1, group_ids=("g", "other"))).groups
    assert (described.error_code, described.group_state, described.assignor_name) == (OK, "Stable", "range")
    (member,) = described.members
    assert (member.member_id, member.member_epoch, member.subscribed_topic_names) == ("a", 1, (ORDERS,))
    assert member.assignment == member.target_assignment
    assert (member.assignment.topic_partitions[0].topic_name, member.member_type) == (ORDERS, 1)
    assert unknown.error_code == ErrorCode.group_id_not_found
    for version, error in ((5, OK), (6, ErrorCode.group_id_not_found)):
        (classic,) = wire.ask(request(15, version, groups=("g",))).groups
        assert (classic.error_code, classic.group_state) == (error, "Dead")


def test_offsets_are_for_members_at_their_epoch(wire: Wire) -> None:
    join(wire, "a")
    assert commit(wire, member_id="a", generation_id_or_member_epoch=1) == OK
    assert commit(wire, member_id="a", generation_id_or_member_epoch=2) == ErrorCode.stale_member_epoch
    assert commit(wire, member_id="b", generation_id_or_member_epoch=1) == ErrorCode.unknown_member_id
    assert commit(wire, member_id="", generation_id_or_member_epoch=-1) == ErrorCode.unknown_member_id
    old = commit(wire, version=8, member_id="a", generation_id_or_member_epoch=1)
    assert old == ErrorCode.unsupported_version

    def fetch(member: str | None, epoch: int) -> Any:
        asked = request(9, 9, group_id="g", name=ORDERS, partition_indexes=(0,), member_id=member, member_epoch=epoch)
        (group,) = wire.ask(asked).groups
        return group.error_code, [
            partition.committed_offset for topic in group.topics for partition in topic.partitions
        ]

    assert fetch("a", 1) == fetch(None, -1) == (OK, [3])
    assert fetch("a", 2) == (ErrorCode.stale_member_epoch, [-1])
    assert fetch("b", 1) == (ErrorCode.unknown_member_id, [])


def test_offsets_that_are_read_cannot_be_forgotten(wire: Wire) -> None:
    join(wire, "a")
    commit(wire, member_id="a", generation_id_or_member_epoch=1)
    asked = request(47, 0, group_id="g", name=ORDERS, partition_index=0)
    assert wire.ask(asked).topics[0].partitions[0].error_code == ErrorCode.group_subscribed_to_topic
    (refused,) = wire.ask(request(42, 2, groups_names=("g",))).results
    assert refused.error_code == ErrorCode.non_empty_group
    beat(wire, "a", -1)
    assert wire.ask(asked).topics[0].partitions[0].error_code == OK


def test_a_group_with_members_keeps_its_protocol(wire: Wire) -> None:
    def classic(member_id: str = "") -> Any:
        times = {"session_timeout": timedelta(seconds=9), "rebalance_timeout": timedelta(seconds=9)}
        values = {"group_id": "g", "member_id": member_id, "group_instance_id": None, "protocol_type": "consumer"}
        return wire.ask(request(11, 9, **times, **values))

    join(wire, "a")
    assert classic().error_code == ErrorCode.inconsistent_group_protocol
    beat(wire, "a", -1)
    answer = classic()
    assert answer.error_code == ErrorCode.member_id_required
    assert classic(answer.member_id).error_code == OK
    refused = join(wire, "a")
    assert refused.error_code == ErrorCode.group_id_not_found
    assert "classic" in refused.error_message
    left = wire.ask(request(13, 5, group_id="g", member_id=answer.member_id, group_instance_id=None))
    assert left.members[0].error_code == OK
    assert join(wire, "a").error_code == OK
