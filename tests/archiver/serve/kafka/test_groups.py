"""Groups over a socket."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from archiver.errors import StorageUnavailable
from catalog.registry import GroupClaim, GroupOffset
from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.nodes_in_memory import NodesInMemory
from tests.support.servers.served_lake import ServedLake, Wire, request

ORDERS = "orders"


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[ServedLake]:
    with ServedLake(archived(tmp_path / "lake", build([Record(value=b"x")] * 10), end=10)) as served:
        yield served


@pytest.fixture
def wire(endpoint: ServedLake) -> Iterator[Wire]:
    with Wire(endpoint.port) as client:
        yield client


def commit(wire: Wire, offset: int, *, version: int = 9, **changes: Any) -> ErrorCode:
    values = {
        "group_id": "g",
        "name": ORDERS,
        "partition_index": 0,
        "committed_offset": offset,
        "committed_metadata": "note",
        "committed_leader_epoch": 4,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
    }
    (partition,) = wire.ask(request(8, version, **values | changes)).topics[0].partitions
    error: ErrorCode = partition.error_code
    return error


def fetched(wire: Wire, *, version: int = 9, **changes: Any) -> Any:
    values = {"group_id": "g", "name": ORDERS, "partition_indexes": (0,), "member_id": None, "member_epoch": -1}
    answer = wire.ask(request(9, version, **values | changes))
    return answer.groups[0] if version >= 8 else answer


@pytest.mark.parametrize("version", range(2, 10))
def test_offsets_by_name(wire: Wire, version: int) -> None:
    assert commit(wire, version, version=version) == ErrorCode.none
    (partition,) = fetched(wire, version=version).topics[0].partitions
    assert (partition.committed_offset, partition.metadata) == (version, "note")
    if version >= 6:
        assert partition.committed_leader_epoch == 4


def test_offsets_by_id(wire: Wire, endpoint: ServedLake) -> None:
    topic_id = endpoint.topics.open[0].topic_id
    assert commit(wire, 7, version=10, topic_id=topic_id) == ErrorCode.none
    (partition,) = fetched(wire, version=10, topic_id=topic_id).topics[0].partitions
    assert partition.committed_offset == 7
    (by_name,) = fetched(wire).topics[0].partitions
    assert by_name.committed_offset == 7
    assert commit(wire, 7, version=10, topic_id=UUID(int=3)) == ErrorCode.unknown_topic_id
    (unknown,) = fetched(wire, version=10, topic_id=UUID(int=3)).topics[0].partitions
    assert unknown.error_code == ErrorCode.unknown_topic_id


@pytest.mark.parametrize("version", [2, 7, 8, 9, 10])
def test_all_offsets_of_a_group(wire: Wire, version: int) -> None:
    assert commit(wire, 3) == ErrorCode.none
    (topic,) = fetched(wire, version=version, topics=None).topics
    assert [partition.committed_offset for partition in topic.partitions] == [3]


def test_what_was_never_committed_is_no_offset(wire: Wire) -> None:
    (partition,) = fetched(wire, group_id="other").topics[0].partitions
    assert (partition.committed_offset, partition.error_code) == (-1, ErrorCode.none)


def test_offsets_of_another_topic_of_the_name_do_not_hold(wire: Wire, endpoint: ServedLake) -> None:
    endpoint.offsets.commit("g", {(ORDERS, 0): GroupOffset(topic_id=UUID(int=9), offset=5)})
    (partition,) = fetched(wire).topics[0].partitions
    assert partition.committed_offset == -1


@pytest.mark.parametrize("version", [2, 7, 8, 9])
def test_offsets_of_unopenable_topics_are_not_none(wire: Wire, endpoint: ServedLake, version: int) -> None:
    """Clients without an offset begin again, or at the end."""
    endpoint.offsets.commit("g", {("away", 0): GroupOffset(topic_id=UUID(int=9), offset=5)})
    answer = fetched(wire, version=version, name="away")
    assert answer.error_code == ErrorCode.coordinator_load_in_progress
    assert {partition.error_code for topic in answer.topics for partition in topic.partitions} <= {
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.stale_member_epoch,
    }
    assert fetched(wire, version=version, name="never").error_code == ErrorCode.none


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"name": "none"}, ErrorCode.unknown_topic_or_partition),
        ({"partition_index": 5}, ErrorCode.unknown_topic_or_partition),
        ({"committed_offset": -3}, ErrorCode.invalid_request),
        ({"committed_metadata": "x" * 5_000}, ErrorCode.offset_metadata_too_large),
        ({"generation_id_or_member_epoch": 3, "member_id": "m"}, ErrorCode.unknown_member_id),
        ({"generation_id_or_member_epoch": 3, "member_id": "m", "version": 8}, ErrorCode.illegal_generation),
        ({"group_id": ""}, ErrorCode.invalid_group_id),
        ({"group_id": "g\0"}, ErrorCode.invalid_group_id),
    ],
)
def test_commits_that_cannot_be_are_refused(wire: Wire, changes: dict[str, Any], error: ErrorCode) -> None:
    assert commit(wire, 1, **changes) == error
    assert fetched(wire).topics[0].partitions[0].committed_offset == -1


def test_without_a_registry_clients_are_told_to_try_again(wire: Wire, endpoint: ServedLake) -> None:
    endpoint.offsets.error = StorageUnavailable("the registry is away")
    assert commit(wire, 1) == ErrorCode.coordinator_not_available
    answer = fetched(wire)
    assert answer.error_code == ErrorCode.coordinator_load_in_progress
    (partition,) = answer.topics[0].partitions
    assert partition.error_code == ErrorCode.stale_member_epoch, "librdkafka asks again for what is named so only"
    assert fetched(wire, version=8).topics == ()
    (partition,) = fetched(wire, version=7).topics[0].partitions
    assert (partition.error_code, partition.committed_offset) == (ErrorCode.coordinator_load_in_progress, -1)
    assert wire.ask(request(16, 5)).error_code == ErrorCode.coordinator_not_available
    endpoint.offsets.error = None
    assert commit(wire, 1) == ErrorCode.none


def test_tools_list_describe_and_delete(wire: Wire) -> None:
    assert wire.ask(request(16, 5, states_filter=(), types_filter=())).groups == ()
    commit(wire, 1)
    (listed,) = wire.ask(request(16, 5, states_filter=(), types_filter=())).groups
    assert (listed.group_id, listed.group_state, listed.group_type) == ("g", "Empty", "Classic")
    assert wire.ask(request(16, 5, states_filter=("stable",), types_filter=())).groups == ()
    existing, unknown = wire.ask(request(15, 6, groups=("g", "other"))).groups
    assert (existing.group_state, unknown.group_state) == ("Empty", "Dead")
    forgotten = wire.ask(request(47, 0, group_id="g", name=ORDERS, partition_index=0))
    assert forgotten.topics[0].partitions[0].error_code == ErrorCode.none
    assert fetched(wire).topics[0].partitions[0].committed_offset == -1
    commit(wire, 1)
    results = wire.ask(request(42, 2, groups_names=("g", "other"))).results
    assert [result.error_code for result in results] == [ErrorCode.none, ErrorCode.group_id_not_found]


def test_this_node_coordinates_groups_and_nothing_else(wire: Wire, endpoint: ServedLake) -> None:
    (coordinator,) = wire.ask(request(10, 6, key_type=0, coordinator_keys=("g",))).coordinators
    assert (coordinator.key, coordinator.node_id, coordinator.port, coordinator.error_code) == (
        "g",
        1,
        endpoint.port,
        ErrorCode.none,
    )
    assert wire.ask(request(10, 0)).port == endpoint.port
    (refused,) = wire.ask(request(10, 6, key_type=1, coordinator_keys=("t",))).coordinators
    assert refused.error_code == ErrorCode.transactional_id_authorization_failed


def join(wire: Wire, member_id: str) -> Any:
    return wire.ask(
        request(
            11,
            9,
            group_id="g",
            member_id=member_id,
            group_instance_id=None,
            protocol_type="consumer",
            session_timeout=timedelta(seconds=10),
            rebalance_timeout=timedelta(seconds=10),
        )
    )


def member(wire: Wire, found: list[Any]) -> None:
    answer = join(wire, "")
    assert answer.error_code == ErrorCode.member_id_required
    joined = join(wire, answer.member_id)
    assert joined.error_code == ErrorCode.none
    asked = request(
        14,
        5,
        group_id="g",
        member_id=joined.member_id,
        generation_id=joined.generation_id,
        group_instance_id=None,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol_name,
        assignment=b"yours",
    )
    found.append((joined, wire.ask(asked)))


def test_members_wait_for_each_other(endpoint: ServedLake, wire: Wire) -> None:
    answers: list[Any] = []
    with Wire(endpoint.port) as other_wire:
        threads = [threading.Thread(target=member, args=(client, answers)) for client in (wire, other_wire)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert len(answers) == 2
    assert {synced.error_code for _, synced in answers} == {ErrorCode.none}
    assert {joined.generation_id for joined, _ in answers} == {1}
    assert sum(bool(joined.members) for joined, _ in answers) == 1
    (described,) = wire.ask(request(15, 6, groups=("g",))).groups
    assert (described.group_state, len(described.members)) == ("Stable", 2)
    joined = answers[0][0]
    member_of = {"member_id": joined.member_id, "generation_id_or_member_epoch": 1}
    assert commit(wire, 4) == ErrorCode.unknown_member_id, "a stranger, while others read"
    assert commit(wire, 4, **member_of) == ErrorCode.none
    (refused,) = wire.ask(request(42, 2, groups_names=("g",))).results
    assert refused.error_code == ErrorCode.non_empty_group
    beat = request(12, 4, group_id="g", member_id=joined.member_id, generation_id=1, group_instance_id=None)
    assert wire.ask(beat).error_code == ErrorCode.none
    left = wire.ask(request(13, 5, group_id="g", member_id=joined.member_id, group_instance_id=None))
    assert left.members[0].error_code == ErrorCode.none
    assert wire.ask(beat).error_code == ErrorCode.unknown_member_id


@pytest.mark.parametrize("group_id", ["a\0b", "x" * 2001], ids=["NUL", "too long"])
def test_an_id_that_no_group_can_have_is_refused_for_good(wire: Wire, endpoint: ServedLake, group_id: str) -> None:
    refused = ErrorCode.invalid_group_id
    assert commit(wire, 1, group_id=group_id) == refused
    assert fetched(wire, version=9, group_id=group_id).error_code == refused
    assert wire.ask(request(12, 4, group_id=group_id, member_id="m")).error_code == refused
    assert wire.ask(request(42, 2, groups_names=(group_id,))).results[0].error_code == refused
    (coordinator,) = wire.ask(request(10, 4, key_type=0, coordinator_keys=(group_id,))).coordinators
    assert coordinator.error_code == refused
    assert endpoint.cluster.groups == 0


@pytest.fixture
def nodes() -> NodesInMemory:
    return NodesInMemory()


@pytest.fixture
def claiming(tmp_path: Path, nodes: NodesInMemory) -> Iterator[Wire]:
    lake = archived(tmp_path / "lake", build([Record(value=b"x")] * 10), end=10)
    with ServedLake(lake, nodes=nodes) as served, Wire(served.port) as client:
        yield client


def test_names_that_clients_make_up_are_answered_without_a_claim(claiming: Wire, nodes: NodesInMemory) -> None:
    unknown = ErrorCode.unknown_member_id
    member = {"member_id": "m", "group_instance_id": None}
    asked = request(12, 4, group_id="a", generation_id=1, **member)
    assert claiming.ask(asked).error_code == unknown
    assert claiming.ask(request(13, 5, group_id="b", **member)).members[0].error_code == unknown
    syncing = request(14, 5, group_id="c", generation_id=1, protocol_type="consumer", protocol_name="range", **member)
    assert claiming.ask(syncing).error_code == unknown
    beating = {"group_id": "d", "member_id": "m", "member_epoch": 3, "instance_id": None, "rack_id": None}
    assert claiming.ask(request(68, 1, **beating)).error_code == unknown
    assert commit(claiming, 1, group_id="e", generation_id_or_member_epoch=3, member_id="m") == unknown
    assert fetched(claiming, group_id="f").error_code == ErrorCode.none
    (deleted,) = claiming.ask(request(42, 2, groups_names=("g",))).results
    assert deleted.error_code == ErrorCode.group_id_not_found
    forgetting = request(47, 0, group_id="h", name=ORDERS, partition_index=0)
    assert claiming.ask(forgetting).error_code == ErrorCode.group_id_not_found
    assert nodes.claims == {}
    assert commit(claiming, 1, group_id="i") == ErrorCode.none
    assert set(nodes.claims) == {"i"}


@pytest.mark.parametrize("version", [7, 9])
def test_offsets_are_told_by_who_has_claimed_the_group(claiming: Wire, nodes: NodesInMemory, version: int) -> None:
    nodes.with_offsets.update({"mine", "theirs"})
    nodes.claims["theirs"] = GroupClaim(cluster_id="archive", node_id=2, epoch=99)
    assert fetched(claiming, version=version, group_id="mine").error_code == ErrorCode.none
    assert set(nodes.claims) == {"mine", "theirs"}
    assert fetched(claiming, version=version, group_id="theirs").error_code == ErrorCode.not_coordinator
