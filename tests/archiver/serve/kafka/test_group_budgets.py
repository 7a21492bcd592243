"""One client's group use is bounded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from archiver.access import ANONYMOUS
from archiver.serve.kafka.service import Client, Service
from archiver.serve.security import Quota, Quotas
from archiver.serve.security.quotas import MOST_WAIT
from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.nodes_in_memory import NodesInMemory
from tests.support.servers.served_lake import ServedLake, Wire, framed, request

ORDERS = "orders"


@pytest.fixture
def nodes() -> NodesInMemory:
    return NodesInMemory()


@pytest.fixture
def endpoint(tmp_path: Path, nodes: NodesInMemory) -> Iterator[ServedLake]:
    quotas = Quotas([Quota(principal="User:ANONYMOUS", groups=5, offset_groups=3)])
    lake = archived(tmp_path / "lake", build([Record(value=b"x")] * 10), end=10)
    with ServedLake(lake, quotas=quotas, nodes=nodes) as served:
        yield served


@pytest.fixture
def wire(endpoint: ServedLake) -> Iterator[Wire]:
    with Wire(endpoint.port) as client:
        yield client


def join(wire: Wire, group_id: str, *, version: int = 9, **changes: Any) -> Any:
    values = {
        "group_id": group_id,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "name": "range",
        "metadata": b"",
        "session_timeout": timedelta(minutes=30),
        "rebalance_timeout": timedelta(seconds=5),
    }
    return wire.ask(request(11, version, **values | changes))


def commit_of(group_id: str, **changes: Any) -> Any:
    values = {
        "group_id": group_id,
        "name": ORDERS,
        "partition_index": 0,
        "committed_offset": 1,
        "committed_metadata": "note",
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
    }
    return request(8, 9, **values | changes)


def commit(wire: Wire, group_id: str, **changes: Any) -> ErrorCode:
    (partition,) = wire.ask(commit_of(group_id, **changes)).topics[0].partitions
    error: ErrorCode = partition.error_code
    return error


def refusals(endpoint: ServedLake, budget: str) -> float:
    text = endpoint.watch._instruments.text().decode()
    name = f'archiver_serve_over_budget_total{{budget="{budget}"}} '
    return next((float(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name)), 0.0)


@pytest.mark.parametrize("member_id", ["", "c-0d4bd3b8-6b22-4b8e-9d53-0d2b6e5a0c11", "nobody"])
def test_joins_of_members_without_an_id_claim_no_group(wire: Wire, nodes: NodesInMemory, member_id: str) -> None:
    errors = {join(wire, f"made-up-{number}", member_id=member_id).error_code for number in range(100)}
    assert errors == {ErrorCode.unknown_member_id if member_id else ErrorCode.member_id_required}
    assert nodes.claims == {}
    joined = join(wire, "real", member_id=join(wire, "real").member_id)
    assert (joined.error_code, joined.generation_id) == (ErrorCode.none, 1)
    assert set(nodes.claims) == {"real"}


def test_groups_beyond_the_budget_are_refused(wire: Wire, endpoint: ServedLake, nodes: NodesInMemory) -> None:
    joined = [join(wire, f"g{number}", version=3).error_code for number in range(7)]
    assert joined == [ErrorCode.none] * 5 + [ErrorCode.group_max_size_reached] * 2
    beat = wire.ask(
        request(
            68,
            1,
            group_id="other",
            member_id="m",
            member_epoch=0,
            instance_id=None,
            rack_id=None,
            subscribed_topic_names=(ORDERS,),
            subscribed_topic_regex=None,
            server_assignor=None,
            topic_partitions=(),
            rebalance_timeout=timedelta(seconds=5),
        )
    )
    assert beat.error_code == ErrorCode.group_max_size_reached
    assert beat.error_message == (
        "the principal has begun as many groups as it may: stop members of groups that it doesn't need"
    )
    assert commit(wire, "one-more") == ErrorCode.invalid_commit_offset_size
    assert set(nodes.claims) == {f"g{number}" for number in range(5)}
    assert refusals(endpoint, "groups") == 4
    assert join(wire, "g0", version=3).error_code == ErrorCode.none, "its group was begun before"


def test_offsets_of_groups_beyond_the_budget_are_refused(wire: Wire, endpoint: ServedLake) -> None:
    assert [commit(wire, f"g{number}") for number in range(3)] == [ErrorCode.none] * 3
    assert commit(wire, "g3") == ErrorCode.invalid_commit_offset_size
    assert commit(wire, "g2", committed_offset=2) == ErrorCode.none
    assert refusals(endpoint, "offset_groups") == 1
    assert endpoint.offsets.groups() == ("g0", "g1", "g2")


def test_metadata_is_bounded_by_its_bytes(wire: Wire) -> None:
    assert commit(wire, "g", committed_metadata="ü" * 2048) == ErrorCode.none
    assert commit(wire, "g", committed_metadata="ü" * 2049) == ErrorCode.offset_metadata_too_large


def test_group_commits_do_not_wait_for_a_flooding_client(endpoint: ServedLake, wire: Wire) -> None:
    async def write_too_much() -> None:
        now = asyncio.get_running_loop().time()
        assert endpoint.quotas.commit_wait("User:ANONYMOUS at 127.0.0.1", 1 << 30, now) > 0

    endpoint.call(write_too_much())
    waits = commit_of("g", committed_offset=7)
    wire.send(framed(waits, 1))
    with Wire(endpoint.port, address="127.0.0.2") as other_wire:
        began = time.monotonic()
        assert commit(other_wire, "g", committed_offset=5) == ErrorCode.none
        assert time.monotonic() - began < MOST_WAIT / 2
    wire.socket.settimeout(0.1)
    with pytest.raises(TimeoutError):
        wire.receive()


class NotedCommits(Quotas):
    sizes: list[int]

    def commit_wait(self, owner: str, size: int, now: float) -> float:
        self.sizes.append(size)
        return super().commit_wait(owner, size, now)


def test_written_names_and_bytes_count_as_written(tmp_path: Path) -> None:
    quotas = NotedCommits()
    quotas.sizes = []
    lake = archived(tmp_path / "lake", build([Record(value=b"x")] * 10), end=10)
    with ServedLake(lake, quotas=quotas) as endpoint, Wire(endpoint.port) as wire:
        assert commit(wire, "g" * 2000, committed_metadata="ü" * 1000) == ErrorCode.none
    assert quotas.sizes == [240 + 2 * (2000 + len(ORDERS)) + 2000]


def test_addresses_of_a_network_share_budgets() -> None:
    unused: Any = None
    service: Any = SimpleNamespace(quotas=Quotas())
    owners = set()
    for host in ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2"):
        client = Client(f"{host}:9", login=unused, turns=unused, closing_log=unused, sessions=unused)
        asked: Any = SimpleNamespace(access=SimpleNamespace(principal=ANONYMOUS), client=client)
        owners.add(Service.budget(service, asked).owner)
    assert owners == {"User:ANONYMOUS at 2001:db8:0:1::/64"}


@pytest.mark.parametrize(
    ("version", "epoch", "member_id", "told"),
    [
        (0, 0, "", ErrorCode.none),
        (0, 0, "mine", ErrorCode.none),
        (0, 1, "", ErrorCode.invalid_request),
        (1, 0, "", ErrorCode.invalid_request),
    ],
)
def test_the_first_version_of_a_heartbeat_is_given_an_id(
    wire: Wire, version: int, epoch: int, member_id: str, told: ErrorCode
) -> None:
    beat = wire.ask(
        request(
            68,
            version,
            group_id="g",
            member_id=member_id,
            member_epoch=epoch,
            instance_id=None,
            rack_id=None,
            subscribed_topic_names=(ORDERS,),
            subscribed_topic_regex=None,
            server_assignor=None,
            topic_partitions=() if not epoch else None,
            rebalance_timeout=timedelta(seconds=5),
        )
    )
    if epoch and told is ErrorCode.invalid_request:
        told = ErrorCode.unknown_member_id  # the group has no members
    assert beat.error_code == told
    if told is ErrorCode.none:
        assert beat.member_id == (member_id or beat.member_id) != ""
        assert beat.member_epoch == 1
