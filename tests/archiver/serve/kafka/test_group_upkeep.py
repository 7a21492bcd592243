"""Offsets expire as in Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

from archiver.serve.groups import Coordinator, Joining
from archiver.serve.kafka.group_upkeep import GroupUpkeep
from archiver.serve.nodes import Beats, GroupDuty, NodeAddress, NodeCluster
from catalog.errors import RegistryUnreachable
from catalog.registry import GroupOffset
from tests.support.servers.node_scene import both_settled
from tests.support.servers.nodes_in_memory import NodesInMemory
from tests.support.servers.served_lake import OffsetsInMemory

DAY = 86400.0
OFFSETS = {("orders", 0): GroupOffset(topic_id=UUID(int=1), offset=7)}
JOINING = Joining(
    member_id="",
    instance_id="one",
    client_id="c",
    host="/h",
    session_seconds=60.0,
    rebalance_seconds=60.0,
    protocol_type="consumer",
    protocols=(("range", b""),),
)


class Scene:
    def __init__(self) -> None:
        self.now = 0.0
        self.offsets = OffsetsInMemory(self.clock)
        self.coordinator = Coordinator(initial_delay=0.0)
        self.store = NodesInMemory()
        self.cluster = NodeCluster(
            "c",
            self.store,
            NodeAddress(host="h", port=1),
            beats=Beats(every=0.01, lost_after=60.0),
            is_used=self.coordinator.groups.__contains__,
        )

    def clock(self) -> float:
        return self.now

    def upkeep(self) -> GroupUpkeep:
        return GroupUpkeep(
            self.cluster, self.coordinator, self.offsets, called, retention=7 * DAY, grace=1800.0, clock=self.clock
        )

    async def committed(self, group_id: str) -> None:
        async def commit(duty: GroupDuty) -> None:
            self.offsets.commit(group_id, OFFSETS, claim=duty.claim)

        self.store.with_offsets.add(group_id)
        await self.cluster.coordinating(group_id, commit, is_kept=True)


async def called(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


def played(scene: Callable[[Scene], Any]) -> None:
    async def play() -> None:
        made = Scene()
        await made.cluster.start()
        try:
            await scene(made)
        finally:
            made.coordinator.close()
            await made.cluster.close()

    asyncio.run(play())


def test_offsets_expire_seven_days_after_last_use() -> None:
    async def scene(made: Scene) -> None:
        upkeep = made.upkeep()
        for group_id in ("idle", "with members", "commits"):
            await made.committed(group_id)
        await made.coordinator.join("with members", JOINING)
        made.now = 4 * DAY
        await upkeep.look()
        await made.committed("commits")
        made.now = 7 * DAY - 1
        await upkeep.look()
        assert made.offsets.groups() == ("commits", "idle", "with members")
        made.now = 7 * DAY + 1
        await upkeep.look()
        assert made.offsets.groups() == ("commits", "with members")
        made.coordinator.forget("with members")
        made.now = 11 * DAY + 2
        await upkeep.look()
        assert made.offsets.groups() == ("with members",), "it had members four days ago"
        made.now = 14 * DAY + 2
        await upkeep.look()
        assert made.offsets.groups() == ()

    played(scene)


def test_offsets_stay_while_members_may_still_return() -> None:
    async def scene(made: Scene) -> None:
        await made.committed("g")
        made.now = 30 * DAY  # the server was away meanwhile
        upkeep = made.upkeep()
        await upkeep.look()
        assert made.offsets.groups() == ("g",)
        await made.coordinator.join("g", JOINING)
        made.now += 1801.0
        await upkeep.look()
        assert made.offsets.groups() == ("g",), "its members are back"

    played(scene)


def test_group_active_during_expiry_keeps_its_offsets() -> None:
    async def scene(made: Scene) -> None:
        upkeep = made.upkeep()
        await made.committed("joins")
        await made.committed("commits")
        made.now = 8 * DAY
        expiry = made.offsets.expired

        def expired(age: float) -> tuple[str, ...]:
            groups = expiry(age)
            made.offsets.expired = expiry  # type: ignore[method-assign]
            made.offsets.commit("commits", OFFSETS)
            return groups

        made.offsets.expired = expired  # type: ignore[method-assign]
        await made.coordinator.join("joins", JOINING)
        await upkeep.look()
        assert made.offsets.groups() == ("commits", "joins")

    played(scene)


def test_group_joined_after_the_age_check_keeps_its_offsets() -> None:
    async def scene(made: Scene) -> None:
        upkeep = made.upkeep()
        await made.committed("g")
        made.now = 8 * DAY
        claim = made.store.claim

        def claimed(group_id: str, **options: Any) -> Any:
            asyncio.run_coroutine_threadsafe(made.coordinator.join("g", JOINING), loop).result(10)
            return claim(group_id, **options)

        loop = asyncio.get_running_loop()
        await made.cluster.release_unused(0.0)
        made.store.claim = claimed  # type: ignore[method-assign]
        await upkeep.look()
        assert "g" in made.coordinator.groups
        assert made.offsets.groups() == ("g",)

    played(scene)


def test_a_registry_that_is_away_is_asked_again() -> None:
    async def scene(made: Scene) -> None:
        upkeep = made.upkeep()
        await made.committed("g")
        made.now = 8 * DAY
        made.offsets.error = RegistryUnreachable("the registry is away")
        await upkeep.look()
        made.offsets.error = None
        assert made.offsets.groups() == ("g",)
        await upkeep.look()
        assert made.offsets.groups() == ()

    played(scene)


def test_groups_of_other_nodes_are_theirs_to_look_after() -> None:
    async def scene(made: Scene) -> None:
        other_node = await NodeCluster(
            "c", made.store, NodeAddress(host="h", port=2), beats=Beats(every=0.01, lost_after=60.0)
        ).start()
        await both_settled(made.cluster, other_node)
        upkeep = made.upkeep()
        names = [f"group {number}" for number in range(20)]
        for name in names:
            made.offsets.commit(name, OFFSETS)
            made.store.with_offsets.add(name)
        made.now = 8 * DAY
        await upkeep.look()
        own = other_node.own.node_id
        assert list(made.offsets.groups()) == sorted(
            name for name in names if made.cluster.members.coordinator(name).node_id == own
        )
        await other_node.close()

    played(scene)
