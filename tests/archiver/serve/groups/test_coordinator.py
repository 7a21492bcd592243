"""Only silent members are removed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from archiver.serve.groups import (
    Beat,
    Beaten,
    Coordinator,
    GroupBudget,
    GroupTimes,
    Joined,
    Joining,
    KnownTopic,
    MemberMemory,
    PartitionId,
    Synced,
    Syncing,
)
from tests.support.timing.virtual_loop import ManualClock, passes, run_in_virtual_time

SESSION = 1.0
TOPICS = {"orders": KnownTopic(UUID(int=1), 2)}
JOINING = Joining(
    member_id="",
    instance_id=None,
    client_id="c",
    host="/h",
    session_seconds=SESSION,
    rebalance_seconds=5.0,
    protocol_type="consumer",
    protocols=(("range", b""),),
    needs_id=False,
)


class Scene:
    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.hears = True
        self.memory = MemberMemory()
        self.refused: list[tuple[str, str]] = []
        self.coordinator = Coordinator(
            initial_delay=0.0,
            times=GroupTimes(interval=0.1, session=SESSION),
            hears=lambda: self.hears,
            memory=self.memory,
            over_budget=lambda owner, budget: self.refused.append((owner, budget)),
        )

    async def joined(self) -> None:
        beat = Beat(member_id="a", epoch=0, rebalance_seconds=5.0, names=frozenset({"orders"}), owned=frozenset())
        assert self.coordinator.beat("assigning", beat, TOPICS).error is ErrorCode.none
        answer: Joined = await self.coordinator.join("classic", JOINING)
        self.member = answer.member_id
        asked = Syncing(member_id=self.member, instance_id=None, generation=1, assignments={self.member: b""})
        synced: Synced = await self.coordinator.sync("classic", asked)
        assert synced.error is ErrorCode.none

    @property
    def members(self) -> dict[str, str]:
        return {"assigning": "a", "classic": self.member}

    @property
    def present(self) -> set[str]:
        return set(self.coordinator.groups)


def played(scene: Callable[[Scene], Awaitable[None]]) -> None:
    clock = ManualClock()

    async def play() -> None:
        made = Scene(clock)
        await made.joined()
        try:
            await scene(made)
        finally:
            made.coordinator.close()

    run_in_virtual_time(play(), clock)


def test_silent_members_are_let_go() -> None:
    async def scene(made: Scene) -> None:
        await passes(0.8 * SESSION)
        assert made.present == {"assigning", "classic"}
        await passes(0.6 * SESSION)
        assert made.present == set()

    played(scene)


def test_members_unheard_during_a_loop_stall_stay() -> None:
    async def scene(made: Scene) -> None:
        for _ in range(2):
            made.clock.now += 1.5 * SESSION  # what a busy machine does to the loop
            await passes(0.1 * SESSION)
        assert made.present == {"assigning", "classic"}
        await passes(1.3 * SESSION)
        assert made.present == set()

    played(scene)


def test_members_whose_heartbeats_cannot_be_answered_stay() -> None:
    async def scene(made: Scene) -> None:
        made.hears = False
        await passes(1.6 * SESSION)
        assert made.present == {"assigning", "classic"}
        made.hears = True
        await passes(1.6 * SESSION)
        assert made.present == set()

    played(scene)


def test_session_restarts_at_the_answer() -> None:
    async def scene(made: Scene) -> None:
        with made.coordinator.asking("assigning", "a"), made.coordinator.asking("classic", made.member):
            with made.coordinator.asking("assigning", "a"):
                await passes(0.9 * SESSION)
            await passes(0.9 * SESSION)
        await passes(0.6 * SESSION)
        assert made.present == {"assigning", "classic"}
        await passes(0.8 * SESSION)
        assert made.present == set()

    played(scene)


@pytest.mark.parametrize("generation", [0, 7])
def test_commit_refused_for_its_member_renews_no_session(generation: int) -> None:
    async def scene(made: Scene) -> None:
        refused = {"assigning": ErrorCode.stale_member_epoch, "classic": ErrorCode.illegal_generation}
        until = made.clock() + 1.4 * SESSION
        while made.present and made.clock() < until:
            for group_id in made.present:
                member = made.members[group_id]
                with made.coordinator.asking(group_id, member, None, generation):
                    error = made.coordinator.commit_error(group_id, member, None, generation)
                    await passes(0.05 * SESSION)
                assert error is refused[group_id] or group_id not in made.present
        assert made.present == set()

    played(scene)


def test_commit_of_a_replaced_instance_renews_no_session() -> None:
    async def scene(made: Scene) -> None:
        joined = await asyncio.gather(
            made.coordinator.join("classic", replace(JOINING, instance_id="i")),
            made.coordinator.join("classic", replace(JOINING, member_id=made.member)),
        )
        generation = joined[0].generation
        names, nothing = frozenset({"orders"}), frozenset[PartitionId]()
        beat = Beat(member_id="b", epoch=0, instance_id="i", rebalance_seconds=5.0, names=names, owned=nothing)
        assert made.coordinator.beat("assigning", beat, TOPICS).error is ErrorCode.none
        until = made.clock() + 1.4 * SESSION
        while made.clock() < until:
            for group_id, number in (("assigning", 1), ("classic", generation)):
                member = made.members[group_id]
                with made.coordinator.asking(group_id, member, "i", number):
                    error = made.coordinator.commit_error(group_id, member, "i", number)
                    await passes(0.05 * SESSION)
                assert error is ErrorCode.fenced_instance_id or group_id not in made.present
        assert made.present == set()

    played(scene)


def test_commit_of_an_unknown_member_renews_no_session() -> None:
    async def scene(made: Scene) -> None:
        until = made.clock() + 1.4 * SESSION
        while made.clock() < until:
            for group_id in ("assigning", "classic"):
                with made.coordinator.asking(group_id, "nobody", None, 1):
                    assert made.coordinator.commit_error(group_id, "nobody", None, 1) is ErrorCode.unknown_member_id
            await passes(0.05 * SESSION)
        assert made.present == set()

    played(scene)


def test_commit_before_the_next_epoch_renews_the_session() -> None:
    async def scene(made: Scene) -> None:
        beat = Beat(member_id="a", epoch=1, rebalance_seconds=5.0, names=frozenset({"more", "orders"}))
        assert made.coordinator.beat("assigning", beat, TOPICS).epoch == 2
        for _ in range(3):
            with made.coordinator.asking("assigning", "a", None, 1):
                await passes(0.6 * SESSION)
        assert made.present == {"assigning"}

    played(scene)


def test_request_for_a_vanished_group_leaves_no_state() -> None:
    async def scene(made: Scene) -> None:
        with made.coordinator.asking("assigning", "a"), made.coordinator.asking("other", "nobody"):
            made.coordinator.forget("assigning")
        assert made.present == {"classic"}
        assert not made.coordinator._asking

    played(scene)


def test_a_member_that_says_all_again_takes_no_more_room() -> None:
    async def scene(made: Scene) -> None:
        def beat(member_id: str, epoch: int, name: str) -> ErrorCode:
            names = frozenset({name})
            asked = Beat(member_id=member_id, epoch=epoch, rebalance_seconds=5.0, names=names, owned=frozenset())
            return made.coordinator.beat("assigning", asked, TOPICS).error

        made.memory._most_bytes = made.memory.bytes
        assert beat("b", 0, "orders") is ErrorCode.coordinator_not_available
        assert beat("a", 1, "orders") is ErrorCode.none
        assert beat("a", 1, "orders-of-another-name") is ErrorCode.coordinator_not_available

    played(scene)


def test_owner_over_member_budget_blocks_no_other_owner() -> None:
    async def scene(made: Scene) -> None:
        few, other_budget = (GroupBudget(owner=name, member_bytes=4000) for name in ("User:a", "User:b"))

        async def join(group_id: str, budget: GroupBudget) -> ErrorCode:
            return (await made.coordinator.join(group_id, replace(JOINING, budget=budget))).error

        def beat(member_id: str, budget: GroupBudget) -> Beaten:
            names = frozenset({"orders"})
            asked = Beat(
                member_id=member_id, epoch=0, rebalance_seconds=5.0, names=names, owned=frozenset(), budget=budget
            )
            return made.coordinator.beat("more", asked, TOPICS)

        assert [await join(f"g{number}", few) for number in range(3)] == [ErrorCode.none] * 3
        assert await join("g3", few) is ErrorCode.group_max_size_reached
        assert await join("g3", other_budget) is ErrorCode.none
        assert beat("m", few).message == "User:a has members that take 4000 bytes"
        assert beat("m", other_budget).error is ErrorCode.none
        assert made.refused == [("User:a", "member_memory")] * 2
        made.coordinator.forget("g0")
        assert beat("n", few).error is ErrorCode.none

    played(scene)


def test_what_a_leader_assigns_counts() -> None:
    async def scene(made: Scene) -> None:
        budget = GroupBudget(owner="User:a", member_bytes=10_000)
        joined = await made.coordinator.join("g", replace(JOINING, budget=budget))

        async def sync(size: int) -> ErrorCode:
            member = joined.member_id
            asked = Syncing(
                member_id=member, instance_id=None, generation=1, assignments={member: bytes(size)}, budget=budget
            )
            return (await made.coordinator.sync("g", asked)).error

        assert await sync(10_000) is ErrorCode.unknown_server_error
        assert await sync(5_000) is ErrorCode.none
        assert made.memory.owner_bytes("User:a") > 6_000

    played(scene)


def test_ten_thousand_ids_keep_nobody_from_beginning_a_group() -> None:
    async def scene(made: Scene) -> None:
        before = made.memory.bytes
        for number in range(10_001):
            asked = replace(JOINING, needs_id=True, session_seconds=1800.0)
            answer = await made.coordinator.join(f"made-up-{number}", asked)
            assert answer.error is ErrorCode.member_id_required
        assert made.present == {"assigning", "classic"}
        assert made.memory.bytes == before
        assert (await made.coordinator.join("real", JOINING)).error is ErrorCode.none

    played(scene)
