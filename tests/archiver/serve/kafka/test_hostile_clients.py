"""Hostile clients hardly delay other clients."""

from __future__ import annotations

import gc
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from archiver.access import Rule
from archiver.serve.kafka.running import keep_loop_responsive
from catalog.registry import GroupOffset
from tests.fault.siege.attacks import attacks, frames
from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.guarded_door import GuardedDoor, come_in
from tests.support.servers.hostile import attacked, memory_within
from tests.support.servers.served_lake import SECONDS, ServedLake, Wire, framed, request, waiting_fetch
from tests.support.timing.eventually import eventually

pytestmark = pytest.mark.timed

MOST_SECONDS = 0.5
MOST_WORK_SECONDS = 0.5
ROUNDS = 20
MOST_BYTES = 192 << 20
"""The memory that any attack may take, beside what the test itself makes. Unread bytes: 64 KiB for each connection."""
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)


def lake(folder: Path) -> Any:
    return archived(folder / "lake", build([Record(value=b"x")] * 10), end=10)


def metadata() -> Any:
    return request(3, 9, name="orders", allow_auto_topic_creation=False)


@pytest.fixture(autouse=True)
def _responsive() -> Iterator[None]:
    thresholds, switching = gc.get_threshold(), sys.getswitchinterval()
    keep_loop_responsive()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(switching)


@pytest.fixture(autouse=True)
def _memory() -> Iterator[None]:
    with memory_within(MOST_BYTES):
        yield


@dataclass(frozen=True, slots=True)
class Waits:
    seconds: list[float]
    worked: list[float]

    def assert_short(self) -> None:
        assert max(self.worked) < MOST_WORK_SECONDS
        assert max(self.seconds) < MOST_SECONDS * crowd()


def has_come(endpoint: ServedLake, attackers: int) -> None:
    server = endpoint.server
    eventually(lambda: server.connections + server.closing_log.closed >= attackers, "the attackers are there")


def crowd() -> float:
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def waits(
    endpoint: ServedLake, asked: Any = None, rounds: int = ROUNDS, *, begin: Callable[[], object] = lambda: None
) -> Waits:
    assert endpoint.thread.ident is not None
    clock = time.pthread_getcpuclockid(endpoint.thread.ident)
    seconds, worked = [], []
    with Wire(endpoint.port) as wire:
        wire.ask(metadata())  # connections wait in the system's queue before
        begin()
        for _ in range(rounds):
            began, cpu = time.monotonic(), time.clock_gettime(clock)
            wire.ask(asked or metadata())
            seconds.append(time.monotonic() - began)
            worked.append(time.clock_gettime(clock) - cpu)
            time.sleep(0.02)
    return Waits(sorted(seconds), sorted(worked))


@pytest.mark.parametrize(("connections", "payload"), [(10, "metadata"), (100, "versions"), (1000, "versions")])
@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2"])
def test_pipelined_requests_leave_turns_to_other_clients(
    tmp_path: Path, connections: int, payload: str, address: str
) -> None:
    sends = API_VERSIONS * 2000 if payload == "versions" else frames(metadata()) * 500
    with (
        ServedLake(lake(tmp_path), most_connections=4000) as endpoint,
        attacked(endpoint.port, sends, connections=connections, address=address),
    ):
        has_come(endpoint, connections)
        waits(endpoint).assert_short()


def test_request_floods_by_strangers_do_not_block_logins(tmp_path: Path) -> None:
    with (
        ServedLake(lake(tmp_path), most_connections=200, door=GuardedDoor()) as endpoint,
        attacked(endpoint.port, API_VERSIONS * 2000, connections=100),
    ):
        time.sleep(0.5)
        with Wire(endpoint.port) as wire:
            come_in(wire)
            assert wire.ask(metadata()).topics[0].error_code == ErrorCode.none
        eventually(lambda: endpoint.server.closing_log.closed, "strangers are let go", seconds=SECONDS)


def test_silent_strangers_give_way_to_who_logs_in(tmp_path: Path) -> None:
    with (
        ServedLake(lake(tmp_path), most_connections=20, door=GuardedDoor()) as endpoint,
        attacked(endpoint.port, b"", connections=60, address="127.0.0.2"),
    ):
        time.sleep(0.3)
        for _ in range(15):
            with Wire(endpoint.port) as wire:
                come_in(wire)


def test_connections_of_a_principal_leave_places(tmp_path: Path) -> None:
    with (
        ServedLake(lake(tmp_path), most_connections=20, door=GuardedDoor()) as endpoint,
        ExitStack() as clients,
    ):
        for _ in range(20):
            come_in(clients.enter_context(Wire(endpoint.port, address="127.0.0.2")))
        with Wire(endpoint.port) as wire:
            come_in(wire, "bob")
            assert wire.ask(metadata()).topics[0].error_code == ErrorCode.none
        eventually(lambda: endpoint.server.closing_log.closed == 2, "the last two are closed", seconds=SECONDS)


@contextmanager
def poor_client(folder: Path) -> Iterator[tuple[ServedLake, Wire]]:
    rule = Rule.parse("User:alice", "allow", ("all",), ("*",), ("*",))
    with ServedLake(lake(folder), door=GuardedDoor(rules=[rule])) as endpoint, Wire(endpoint.port) as wire:
        come_in(wire, "bob")
        yield endpoint, wire


NAMES = tuple(f"a-name-{number}" for number in range(20_000))


@pytest.mark.parametrize(
    ("api_key", "version", "values"),
    [
        (32, 4, {"resources": [("resource_name", name) for name in NAMES]}),
        (10, 4, {"coordinator_keys": NAMES, "key_type": 0}),
        (15, 5, {"groups": NAMES}),
        (42, 2, {"groups_names": NAMES}),
        (9, 8, {"groups": [("group_id", name) for name in NAMES]}),
        (69, 0, {"group_ids": NAMES}),
        (3, 12, {"topics": [("name", name) for name in NAMES]}),
    ],
    ids=["configs", "coordinators", "groups", "deleted groups", "offsets", "consumer groups", "metadata"],
)
def test_many_hidden_names_are_refused_in_turns(
    tmp_path: Path, api_key: int, version: int, values: dict[str, Any]
) -> None:
    blank = request(api_key, version, **{name: value for name, value in values.items() if not isinstance(value, list)})
    for field, named in values.items():
        if isinstance(named, list):
            (element,) = getattr(blank, field)
            changes = {"topic_id": None} if hasattr(element, "topic_id") else {}
            changes |= {"resource_type": 2} if hasattr(element, "resource_type") else {}
            blank = replace(blank, **{field: tuple(replace(element, **{key: name}, **changes) for key, name in named)})
    with poor_client(tmp_path) as (endpoint, wire):
        wire.send(framed(blank, 1))
        began = time.monotonic()
        with Wire(endpoint.port) as other_wire:
            come_in(other_wire)
            assert time.monotonic() - began < MOST_SECONDS * crowd()
        assert len(wire.receive()) > len(NAMES)


def test_a_name_is_answered_once(tmp_path: Path) -> None:
    entry = metadata().topics[0]
    asked = replace(metadata(), topics=(entry,) * 40_000)
    with ServedLake(lake(tmp_path)) as endpoint, Wire(endpoint.port) as wire:
        assert [topic.name for topic in wire.ask(asked).topics] == ["orders"]
        groups = request(15, 5, groups=("g",) * 10_000)
        assert len(wire.ask(groups).groups) == 1
        offsets = request(9, 8, group_id="g", name="orders", partition_indexes=(0,))
        several = replace(offsets, groups=(*offsets.groups * 1000, replace(offsets.groups[0], topics=None)))
        assert [group.group_id for group in wire.ask(several).groups] == ["g"]


def test_partition_named_twice_has_no_offset(tmp_path: Path) -> None:
    asked = request(2, 7, name="orders", partition_index=0, timestamp=-1)
    (topic,) = asked.topics
    twice = replace(asked, topics=(replace(topic, partitions=topic.partitions * 2),))
    with ServedLake(lake(tmp_path)) as endpoint, Wire(endpoint.port) as wire:
        (result,) = wire.ask(twice).topics
        assert [partition.error_code for partition in result.partitions] == [ErrorCode.invalid_request] * 2


def test_offsets_named_again_are_answered_once(tmp_path: Path) -> None:
    commit = request(8, 7, group_id="g", generation_id_or_member_epoch=-1, member_id="", group_instance_id=None)
    (topic,) = commit.topics
    stored = replace(topic.partitions[0], partition_index=0, committed_offset=1, committed_metadata="m" * 4000)
    commit = replace(commit, topics=(replace(topic, name="orders", partitions=(stored,)),))
    with ServedLake(lake(tmp_path)) as endpoint, Wire(endpoint.port) as wire:
        wire.ask(commit)
        for version in (5, 8):
            asked = request(9, version, group_id="g", name="orders", partition_indexes=(0,) * 50)
            named = asked.groups[0] if version == 8 else asked
            several = replace(named, topics=named.topics * 1000)
            answer = wire.ask(several if version == 5 else replace(asked, groups=(several,)))
            (result,) = (answer.groups[0] if version == 8 else answer).topics
            assert [partition.committed_offset for partition in result.partitions] == [1]


def test_long_metadata_of_many_groups_is_given_in_parts(tmp_path: Path) -> None:
    partitions = tuple(range(1000))
    asked = request(9, 8, name="orders", partition_indexes=partitions)
    groups = tuple(replace(asked.groups[0], group_id=f"g{number}") for number in range(20))
    with ServedLake(lake(tmp_path)) as endpoint, Wire(endpoint.port) as wire:
        (topic,) = endpoint.topics.open
        kept = GroupOffset(topic_id=topic.topic_id, offset=1, leader_epoch=-1, metadata="m" * 4000)
        for group in groups:
            endpoint.offsets.commit(group.group_id, {("orders", number): kept for number in partitions})
        answered = {group.group_id: group for group in wire.ask(replace(asked, groups=groups)).groups}
        errors = [answered[group.group_id].error_code for group in groups]
        given = errors.index(ErrorCode.coordinator_load_in_progress)
        assert 0 < given < 10
        assert errors == [ErrorCode.none] * given + [ErrorCode.coordinator_load_in_progress] * (20 - given)


def test_leaving_members_leave_turns_to_other_clients(tmp_path: Path) -> None:
    joining = request(11, 3, group_id="g", member_id="", session_timeout=timedelta(minutes=5))
    joining = replace(joining, rebalance_timeout=timedelta(minutes=5))
    leaving = request(13, 3, group_id="g", group_instance_id=None)
    (member,) = leaving.members
    names = tuple(replace(member, member_id=name) for name in NAMES)
    with ServedLake(lake(tmp_path), most_connections=400) as endpoint, ExitStack() as clients:
        for _ in range(100):
            clients.enter_context(Wire(endpoint.port, address="127.0.0.2")).send(framed(joining, 1))
        with Wire(endpoint.port, address="127.0.0.2") as wire:
            eventually(lambda: _members_of(endpoint, "g") == 100, "all have joined", seconds=SECONDS)
            frame = framed(replace(leaving, members=names), 1)
            waits(endpoint, begin=lambda: wire.send(frame)).assert_short()
            assert len(wire.receive()) > len(NAMES)


def test_subscriptions_are_parsed_beside_other_clients(tmp_path: Path) -> None:
    empty_names = struct.pack(">hi", 0, 1_000_000) + b"\0\0" * 1_000_000
    joining = request(11, 3, group_id="g", member_id="", session_timeout=timedelta(minutes=5))
    (protocol,) = joining.protocols
    joining = replace(joining, rebalance_timeout=timedelta(minutes=5), protocol_type="consumer")
    joining = replace(joining, protocols=(replace(protocol, name="range", metadata=empty_names),))
    with (
        ServedLake(lake(tmp_path), most_request_bytes=4 << 20) as endpoint,
        Wire(endpoint.port, address="127.0.0.2") as first,
        Wire(endpoint.port, address="127.0.0.2") as second,
        Wire(endpoint.port, address="127.0.0.2") as wire,
    ):
        for member in (first, second):
            member.send(framed(joining, 1))
        eventually(lambda: _members_of(endpoint, "g") == 2, "both have joined", seconds=SECONDS)
        frame = framed(request(47, 0, group_id="g", name="orders", partition_index=0), 1)
        waited = waits(endpoint, begin=lambda: wire.send(frame))
        waited.assert_short()
        assert max(waited.worked) < MOST_WORK_SECONDS / 3
        assert wire.receive()


def _members_of(endpoint: ServedLake, group_id: str) -> int:
    with Wire(endpoint.port) as wire:
        return len(wire.ask(request(15, 4, groups=(group_id,))).groups[0].members)


def test_searches_by_time_leave_turns_to_other_clients(tmp_path: Path) -> None:
    search = request(2, 7, name="orders", partition_index=0, timestamp=1)
    with (
        ServedLake(lake(tmp_path), most_connections=400) as endpoint,
        attacked(endpoint.port, frames(search) * 500, connections=100, address="127.0.0.2"),
    ):
        eventually(lambda: endpoint.server.loop_time.seconds > 0.2, "searches arrive", seconds=SECONDS)
        waits(endpoint, search).assert_short()


def test_long_requests_leave_turns_to_other_clients(tmp_path: Path) -> None:
    asked = request(2, 7, name="orders", partition_index=0, timestamp=-1)
    (topic,) = asked.topics
    partitions = tuple(replace(topic.partitions[0], partition_index=number) for number in range(50_000))
    long = frames(replace(asked, topics=(replace(topic, partitions=partitions),)))
    with (
        ServedLake(lake(tmp_path), most_connections=4000, most_request_bytes=4 << 20) as endpoint,
        attacked(endpoint.port, long, connections=10, address="127.0.0.2"),
    ):
        has_come(endpoint, 10)
        waits(endpoint).assert_short()


def test_costly_patterns_leave_turns_to_other_clients(tmp_path: Path) -> None:
    beats = [
        request(
            68,
            1,
            group_id="g",
            member_id=f"m{number}",
            member_epoch=0,
            instance_id=None,
            rack_id=None,
            rebalance_timeout=timedelta(minutes=1),
            subscribed_topic_names=None,
            subscribed_topic_regex=rf"(\pL|\pN){{{400 + number}}}",
            server_assignor=None,
            topic_partitions=(),
        )
        for number in range(3)
    ]
    with ServedLake(lake(tmp_path)) as endpoint, ExitStack() as clients:
        wires = [clients.enter_context(Wire(endpoint.port, address="127.0.0.2")) for _ in beats]
        for wire, beat in zip(wires, beats, strict=True):
            wire.send(framed(beat, 1))
        waits(endpoint).assert_short()
        for wire in wires:
            wire.receive()
        another = clients.enter_context(Wire(endpoint.port))
        began = time.monotonic()
        another.ask(replace(beats[0], member_id="another"))
        assert time.monotonic() - began < MOST_SECONDS * crowd(), "it is known what the pattern matches"


@pytest.mark.parametrize(
    "name", ["joins without an id", "slow frames", "fetch sessions", "unknown names", "commits", "random bytes"]
)
def test_attacks_leave_turns_to_other_clients(tmp_path: Path, name: str) -> None:
    with (
        ServedLake(lake(tmp_path), most_connections=1000) as endpoint,
        attacked(endpoint.port, attacks("orders")[name], connections=50, address="127.0.0.2"),
    ):
        has_come(endpoint, 50)
        waits(endpoint).assert_short()


@pytest.mark.slow
@pytest.mark.parametrize("connections", [100, 1000])
@pytest.mark.parametrize("name", ["fetch sessions", "unknown names"])
def test_many_attackers_leave_turns_to_other_clients(tmp_path: Path, name: str, connections: int) -> None:
    with (
        ServedLake(lake(tmp_path), most_connections=2100) as endpoint,
        attacked(endpoint.port, attacks("orders")[name], connections=connections, address="127.0.0.2"),
    ):
        has_come(endpoint, connections)
        waits(endpoint, rounds=100).assert_short()


def test_waiting_fetches_keep_each_partition_once(tmp_path: Path) -> None:
    asked = waiting_fetch(1)
    (topic,) = asked.topics
    long = replace(asked, topics=(replace(topic, partitions=topic.partitions * 30_000),))
    frame = framed(long, 1)
    with (
        ServedLake(lake(tmp_path), most_request_bytes=4 << 20) as endpoint,
        ExitStack() as clients,
    ):
        with memory_within(MOST_BYTES // 2):
            for _ in range(20):
                clients.enter_context(Wire(endpoint.port, address="127.0.0.2")).send(frame)
            time.sleep(1)
            eventually(lambda: not endpoint.server.loop_time.has_long_work, seconds=SECONDS)
        parked = [thing for thing in gc.get_objects() if type(thing) is type(topic.partitions[0])]
        assert len(parked) < 1000


def test_wrong_frames_cost_few_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ServedLake(lake(tmp_path)) as endpoint:
        for _ in range(100):
            with Wire(endpoint.port) as wire:
                wire.socket.sendall(b"\xff\xff\xff\xff")
                assert wire.is_closed()
        assert endpoint.server.closing_log.closed == 100
    lines = [record for record in caplog.records if "closed: a frame's size" in record.getMessage()]
    assert len(lines) == 5
    assert not any(record.exc_info for record in lines)


def test_metadata_v0_shows_nothing_without_rights(tmp_path: Path) -> None:
    with poor_client(tmp_path) as (_, wire):
        answer = wire.ask(request(3, 0, name="orders"))
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.topic_authorization_failed]
        assert answer.brokers
