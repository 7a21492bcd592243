"""Two nodes behind two sockets."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq
import pytest
from kio.schema.errors import ErrorCode

from archiver.serve.kafka.service import Redirects
from archiver.serve.nodes import Beats
from archiver.serve.reading import served_topic
from tests.support.archive.archived_batches import ROWS, archived
from tests.support.archive.lake import Lake
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.nodes_in_memory import Line, NodesInMemory
from tests.support.servers.served_lake import OffsetsInMemory, ServedLake, Wire, request
from tests.support.timing.eventually import eventually

ORDERS = "orders"
END = 203
GROUPS = tuple(f"group {number}" for number in range(20))


def fetch(wire: Wire, offset: int, *, version: int = 12, **changes: Any) -> Any:
    values = {
        "topic": ORDERS,
        "partition": 0,
        "fetch_offset": offset,
        "max_bytes": 1 << 20,
        "partition_max_bytes": 1 << 20,
        "min_bytes": 1,
        "max_wait": timedelta(0),
        "session_id": 0,
        "session_epoch": -1,
        "forgotten_topics_data": (),
    }
    return wire.ask(request(1, version, **values | changes)).responses[0].partitions[0]


def commit(wire: Wire, offset: int, group: str, *, partition: int = 0) -> ErrorCode:
    values = {"group_id": group, "name": ORDERS, "partition_index": partition, "committed_offset": offset}
    nobody = {"generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}
    error: ErrorCode = wire.ask(request(8, 9, **values, **nobody)).topics[0].partitions[0].error_code
    return error


def more(lake: Lake) -> None:
    (file,) = archived(lake.folder / "more", build([Record(value=b"new")], base_offset=END), end=END + 1).files()
    table = pq.read_table(file.file_path.removeprefix("file://"))
    lake.add(ROWS, table.combine_chunks().to_batches()[0], END, END + 1)


class Two:
    def __init__(self, lake: Lake, *, lines: Sequence[Line] = (), **options: Any) -> None:
        self.lake = lake
        shared = {"nodes": NodesInMemory(), "offsets": OffsetsInMemory()} | options
        own: Sequence[dict[str, Any]] = [{"nodes": line} for line in lines] or [{}, {}]
        self.nodes = tuple(ServedLake(lake, **shared | settings) for settings in own)

    def __enter__(self) -> Self:
        for node in self.nodes:
            node.__enter__()
        eventually(
            lambda: all(node.cluster.settled_for >= 0 and len(node.cluster.members.nodes) == 2 for node in self.nodes),
            "both nodes agree",
        )
        self.wires = tuple(Wire(node.port) for node in self.nodes)
        return self

    def __exit__(self, *error: object) -> None:
        for opened in self.wires:
            opened.socket.close()
        for opened in self.nodes:
            opened.__exit__(*error)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    batches = [build([Record(value=b"x")] * 5, base_offset=at, leader_epoch=0) for at in range(0, 200, 5)]
    return archived(tmp_path / "lake", b"".join(batches), end=END, files=2)


@pytest.fixture
def two(lake: Lake) -> Iterator[Two]:
    with Two(lake) as nodes:
        yield nodes


def test_all_nodes_tell_the_same(two: Two) -> None:
    for version in (9, 12):
        first, second = (wire.ask(request(3, version, topics=None)) for wire in two.wires)
        assert first == second
        assert [broker.port for broker in first.brokers] == [node.port for node in two.nodes]
        (partition,) = first.topics[0].partitions
        assert partition.leader_id in partition.replica_nodes == partition.isr_nodes
        assert sorted(partition.replica_nodes) == [1, 2]
    first, second = (wire.ask(request(60, 1, endpoint_type=1)) for wire in two.wires)
    assert first == second
    assert len(first.brokers) == 2
    first, second = (wire.ask(request(75, 0, name=ORDERS, cursor=None)) for wire in two.wires)
    assert first == second


def test_all_nodes_name_one_coordinator_and_only_it_answers(lake: Lake) -> None:
    with Two(lake, redirects=Redirects(coordinator=0.01)) as two:
        check_coordinators(two)


def check_coordinators(two: Two) -> None:
    answers = [item.ask(request(10, 6, key_type=0, coordinator_keys=GROUPS)).coordinators for item in two.wires]
    assert answers[0] == answers[1]
    owners = {item.key: [node.port for node in two.nodes].index(item.port) for item in answers[0]}
    assert set(owners.values()) == {0, 1}
    for group, owner in owners.items():
        own, other_wire = two.wires[owner], two.wires[1 - owner]
        assert commit(own, 5, group) == ErrorCode.none
        assert commit(other_wire, 5, group) == ErrorCode.not_coordinator
        for key, version in ((11, 5), (11, 9), (12, 4), (13, 4), (14, 3), (14, 5), (9, 5), (47, 0)):
            assert other_wire.ask(request(key, version, group_id=group)).error_code == ErrorCode.not_coordinator, key
        (old,) = other_wire.ask(request(9, 1, group_id=group, name=ORDERS, partition_indexes=(0,))).topics
        assert old.partitions[0].error_code == ErrorCode.not_coordinator
        (new,) = other_wire.ask(request(9, 9, group_id=group)).groups
        assert new.error_code == ErrorCode.not_coordinator


def test_request_about_many_groups_covers_the_nodes_own(two: Two) -> None:
    for group in GROUPS:
        assert [commit(wire, 5, group) for wire in two.wires].count(ErrorCode.none) == 1
    for key, version, asked, reply_field in ((15, 5, "groups", "groups"), (42, 2, "groups_names", "results")):
        answers = [getattr(wire.ask(request(key, version, **{asked: GROUPS})), reply_field) for wire in two.wires]
        for group in GROUPS:
            errors = [result.error_code for results in answers for result in results if result.group_id == group]
            assert sorted(errors) == [ErrorCode.none, ErrorCode.not_coordinator], (key, group)


def test_each_node_lists_its_own_groups(two: Two) -> None:
    for group in GROUPS:
        for wire in two.wires:
            commit(wire, 5, group)
    listed = [[group.group_id for group in wire.ask(request(16, 4, states_filter=())).groups] for wire in two.wires]
    assert sorted(listed[0] + listed[1]) == sorted(GROUPS)
    assert listed[0]
    assert listed[1]


def test_without_registry_reads_work_and_groups_do_not(lake: Lake) -> None:
    store = NodesInMemory()
    beats = Beats(every=0.05, lost_after=2.0)
    with ServedLake(lake, nodes=store, beats=beats) as endpoint, Wire(endpoint.port) as wire:
        assert commit(wire, 5, "g") == ErrorCode.none
        store.is_away = True
        eventually(lambda: endpoint.cluster.trouble, "the node misses the registry")
        eventually(lambda: not endpoint.cluster.is_leased, "the node's lease ends")
        assert commit(wire, 5, "g") == ErrorCode.coordinator_not_available
        (coordinator,) = wire.ask(request(10, 6, key_type=0, coordinator_keys=("g",))).coordinators
        assert coordinator.error_code == ErrorCode.coordinator_not_available
        assert wire.ask(request(16, 4, states_filter=())).error_code == ErrorCode.coordinator_not_available
        assert fetch(wire, 0).records
        store.is_away = False
        deadline = time.monotonic() + 10
        while commit(wire, 5, "g") != ErrorCode.none:
            assert time.monotonic() < deadline


@pytest.mark.parametrize(
    ("version", "error", "named"),
    [
        (3, ErrorCode.not_coordinator, ErrorCode.not_coordinator),
        (7, ErrorCode.coordinator_load_in_progress, ErrorCode.coordinator_load_in_progress),
        (8, ErrorCode.not_coordinator, None),
        (9, ErrorCode.not_coordinator, ErrorCode.stale_member_epoch),
        (10, ErrorCode.not_coordinator, ErrorCode.stale_member_epoch),
    ],
)
def test_node_without_registry_redirects_offset_requests(
    lake: Lake, version: int, error: ErrorCode, named: ErrorCode | None
) -> None:
    options = {"beats": Beats(every=0.05, lost_after=2.0), "redirects": Redirects(registry_away=1.0)}
    lines = [Line(store := NodesInMemory()), Line(store)]
    with Two(lake, lines=lines, **options) as two:
        lines[0].is_away = True
        eventually(lambda: two.nodes[0].cluster.trouble, "the node misses the registry")
        eventually(lambda: not two.nodes[0].cluster.is_leased, "the node's lease ends")
        reply = two.wires[0].ask(request(9, version, group_id="g", name=ORDERS, member_id=None, member_epoch=-1))
        reply = reply.groups[0] if version >= 8 else reply
        assert reply.error_code == error
        partitions = [partition for topic in reply.topics for partition in topic.partitions]
        assert [partition.error_code for partition in partitions] == ([] if named is None else [named])
        assert {partition.committed_offset for partition in partitions} <= {-1}
        (coordinator,) = two.wires[0].ask(request(10, 6, key_type=0, coordinator_keys=("g",))).coordinators
        assert (coordinator.error_code, coordinator.port) == (ErrorCode.none, two.nodes[1].port)
        if version >= 8:
            asked = request(9, version, group_id="g", name=ORDERS, member_id=None, member_epoch=-1)
            many = tuple(replace(asked.groups[0], group_id=f"g{number}") for number in range(20))
            began = time.monotonic()
            answers = two.wires[0].ask(replace(asked, groups=many)).groups
            assert {(answer.group_id, answer.error_code) for answer in answers} == {
                (group.group_id, error) for group in many
            }
            assert time.monotonic() - began < 9, "each group was waited for"


def end_at(wire: Wire) -> int:
    answer = wire.ask(request(2, 7, name=ORDERS, partition_index=0, timestamp=-1, replica_id=-1, isolation_level=0))
    partition = answer.topics[0].partitions[0]
    assert partition.error_code == ErrorCode.none
    return int(partition.offset)


def test_the_end_never_goes_back_at_a_node_that_has_seen_less(lake: Lake) -> None:
    with Two(lake, interval=30.0) as two:
        more(lake)
        two.nodes[0].call(two.nodes[0].topics.open[0].caught_up())
        assert end_at(two.wires[0]) == END + 1
        assert two.nodes[1].topics.open[0].end(0) == END
        assert end_at(two.wires[1]) == END + 1


def test_client_ahead_triggers_a_look_and_stays_in_range(lake: Lake) -> None:
    with Two(lake, interval=30.0) as two:
        more(lake)
        partition = fetch(two.wires[1], END + 1)
        assert (partition.error_code, partition.high_watermark, partition.records) == (ErrorCode.none, END + 1, b"")
        began = time.monotonic()
        partition = fetch(two.wires[1], END + 2, max_wait=timedelta(milliseconds=100))
        assert partition.error_code == ErrorCode.offset_not_available
        assert 0.09 < time.monotonic() - began < 5


def test_who_is_ahead_waits_for_the_records(lake: Lake) -> None:
    with Two(lake) as two:
        timer = threading.Timer(0.2, lambda: more(lake))
        timer.start()
        # The record ends right before the offset, so the client waits as long as it allows.
        partition = fetch(two.wires[1], END + 1, max_wait=timedelta(seconds=5))
        timer.join()
        assert (partition.error_code, partition.high_watermark) == (ErrorCode.none, END + 1)


def partitions_of(wire: Wire, key: int) -> int:
    asked = (
        request(3, 12, topics=None)
        if key == 3
        else request(75, 0, name=ORDERS, cursor=None, response_partition_limit=9)
    )
    return len(wire.ask(asked).topics[0].partitions)


@pytest.mark.parametrize("key", [3, 75])
def test_listing_finds_partitions_without_fetches(lake: Lake, monkeypatch: pytest.MonkeyPatch, key: int) -> None:
    monkeypatch.setattr(served_topic, "_UNSEEN_SECONDS", 0.0)
    with Two(lake) as two:
        lake.add(ROWS, None, 0, 5, partition=1)
        eventually(lambda: [partitions_of(wire, key) for wire in two.wires] == [2, 2], "both list two partitions")


def test_coordinator_assigns_new_partitions_without_fetches(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_topic, "_UNSEEN_SECONDS", 0.0)
    member = {
        "group_id": "g",
        "member_id": "a",
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout": timedelta(seconds=9),
        "subscribed_topic_names": (ORDERS,),
        "subscribed_topic_regex": None,
        "server_assignor": None,
    }
    with ServedLake(lake) as endpoint, Wire(endpoint.port) as wire:
        answer = wire.ask(request(68, 1, **member, member_epoch=0, topic_partitions=()))
        assert [partition.partitions for partition in answer.assignment.topic_partitions] == [(0,)]
        lake.add(ROWS, None, 0, 5, partition=1)
        epoch = answer.member_epoch

        def is_assigned() -> bool:
            nonlocal epoch
            beat = wire.ask(request(68, 1, **member, member_epoch=epoch, topic_partitions=None))
            assert beat.error_code == ErrorCode.none
            epoch = beat.member_epoch
            return beat.assignment is not None and beat.assignment.topic_partitions[0].partitions == (0, 1)

        eventually(is_assigned, "both partitions are assigned", seconds=10, every=0.05)


def test_offsets_of_partitions_known_elsewhere_are_kept(lake: Lake) -> None:
    with Two(lake, interval=30.0) as two:
        lake.add(ROWS, None, 0, 5, partition=1)
        for group in GROUPS[:5]:
            errors = [commit(wire, 3, group, partition=1) for wire in two.wires]
            assert sorted(errors) == [ErrorCode.none, ErrorCode.not_coordinator]
        assert {commit(wire, 3, "g", partition=2) for wire in two.wires} == {
            ErrorCode.unknown_topic_or_partition,
            ErrorCode.not_coordinator,
        }


def test_a_node_that_can_not_find_out_says_so(lake: Lake) -> None:
    from archiver.errors import StorageUnavailable

    def away(_: str) -> Any:
        raise StorageUnavailable("the catalog is away")

    with Two(lake) as two:
        lake.load = away  # type: ignore[method-assign]
        for version, error in ((7, ErrorCode.offset_not_available), (4, ErrorCode.leader_not_available)):
            asked = request(2, version, name=ORDERS, partition_index=0, timestamp=-1, replica_id=-1, isolation_level=0)
            assert two.wires[0].ask(asked).topics[0].partitions[0].error_code == error
        asked = request(2, 7, name=ORDERS, partition_index=0, timestamp=-2, replica_id=-1, isolation_level=0)
        assert two.wires[0].ask(asked).topics[0].partitions[0].offset == 0
        epoch = request(23, 4, topic=ORDERS, partition=0, leader_epoch=0, replica_id=-1)
        assert two.wires[0].ask(epoch).topics[0].partitions[0].error_code == ErrorCode.kafka_storage_error
        assert fetch(two.wires[0], 0).records


def test_a_topic_is_found_by_an_id_that_another_node_told(lake: Lake) -> None:
    with Two(lake) as two:
        topic = two.nodes[0].topics.open[0]
        two.nodes[1].topics._topics.clear()
        time.sleep(0.06)
        assert fetch(two.wires[1], 0, version=13, topic_id=topic.topic_id).error_code == ErrorCode.none


def test_wrong_node_answers_until_views_agree(lake: Lake) -> None:
    with Two(lake, redirects=Redirects(leader=3.0)) as two:
        topic = two.nodes[0].topics.open[0]
        leader = two.nodes[0].cluster.members.leaders(topic.topic_id, 0)[0].node_id - 1
        assert fetch(two.wires[1 - leader], 0).records, "every node can read everything"
        eventually(lambda: all(node.cluster.settled_for > 3.0 for node in two.nodes), "the nodes agreed for long")
        assert fetch(two.wires[1 - leader], 0).error_code == ErrorCode.not_leader_or_follower
        assert fetch(two.wires[leader], 0).records


def test_leaving_node_accepts_clients_until_all_know(lake: Lake) -> None:
    """librdkafka's admin client waits for its leader, even if nothing listens there."""
    shared: dict[str, Any] = {"nodes": NodesInMemory(), "offsets": OffsetsInMemory()}
    late = Beats(every=0.3, lost_after=60.0)
    with ServedLake(lake, beats=late, **shared) as staying, ServedLake(lake, beats=late, **shared) as leaving:
        eventually(lambda: len(staying.cluster.members.nodes) == 2 and leaving.cluster.members.is_settled, "two nodes")
        ending = asyncio.run_coroutine_threadsafe(leaving.server.end_in_order(10), leaving.loop)
        served = 0
        with suppress(ConnectionRefusedError):
            while not ending.done():
                with Wire(leaving.port) as wire, suppress(ConnectionResetError, BrokenPipeError):  # one is cut short
                    wire.ask(request(3, 12, topics=None))
                    served += 1
        with Wire(staying.port) as wire:
            assert [broker.port for broker in wire.ask(request(3, 12, topics=None)).brokers] == [staying.port]
        assert served > 1
        ending.result(10)
