"""Claims on groups in the registry."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from archiver.serve.groups import GroupBudget
from archiver.serve.nodes import GroupDuty, GroupStanding, Need
from tests.support.servers.node_scene import GROUPS, Scene, answer, asked, both_settled, played, until
from tests.support.servers.nodes_in_memory import NodesInMemory


def test_delayed_claims_are_made_by_the_views_coordinator() -> None:
    class Slow(NodesInMemory):
        def __init__(self, real: NodesInMemory) -> None:
            self.__dict__ = real.__dict__
            self.gate = threading.Event()
            self.waiting = threading.Semaphore(0)

        def claim(self, group_id: str, **wanted: Any) -> Any:
            self.waiting.release()
            assert self.gate.wait(10)
            return super().claim(group_id, **wanted)

    async def scene(made: Scene) -> None:
        slow = Slow(made.store)
        first = await made.node(1, store=slow).start()
        asking = [asyncio.ensure_future(asked(first, name)) for name in GROUPS]
        await asyncio.get_running_loop().run_in_executor(None, slow.waiting.acquire)
        second = await made.node(2).start()
        await both_settled(first, second)
        moved = [name for name in GROUPS if second.standing(name) is GroupStanding.COORDINATOR]
        assert len(moved) > 2, "some are still in the queue"
        slow.gate.set()
        answers = await asyncio.gather(*asking)
        assert [name for name, answer in zip(GROUPS, answers, strict=True) if answer is GroupStanding.OTHER] == moved
        assert [await asked(second, name) for name in moved] == ["answer"] * len(moved)
        for group, claim in made.store.claims.items():
            assert claim.node_id == second.members.coordinator(group).node_id

    played(scene)


def test_requests_carry_the_claim_that_they_came_with() -> None:
    async def scene(made: Scene) -> None:
        node = await made.node(1).start()

        async def claim(duty: GroupDuty) -> Any:
            return duty.claim

        current = await node.coordinating("g", claim, is_kept=True)
        assert current == made.store.claims["g"]
        node.refused("g", current)
        await until(lambda: node.groups == 0)
        assert made.let_go[1] == ["g"]
        assert await asked(node, "g") == "answer", "it is claimed again"

    played(scene)


def test_names_that_clients_make_up_leave_nothing_behind() -> None:
    async def scene(made: Scene) -> None:
        node = await made.node(1).start()
        for need in (Need.MEMBERS, Need.OFFSETS):
            standing = await node.coordinating("made up", answer, is_kept=False, need=need)
            assert standing is GroupStanding.UNUSED
        assert made.store.claims == {}
        assert node.groups == 0
        made.store.with_offsets.add("kept")
        assert await node.coordinating("kept", answer, is_kept=False, need=Need.OFFSETS) == "answer"

    played(scene)


def test_idle_groups_are_released_and_claimed_on_request() -> None:
    async def scene(made: Scene) -> None:
        node = await made.node(1, is_used={"with members"}.__contains__).start()
        for group in ("with members", "with offsets", "with neither"):
            assert await asked(node, group) == "answer"
        made.store.with_offsets.add("with offsets")
        assert await node.release_unused(60.0) == 0, "they were asked for a moment ago"
        assert await node.release_unused(0.0) == 2
        assert set(made.store.claims) == {"with members", "with offsets"}
        assert node.groups == 1
        assert await asked(node, "with neither") == "answer"

    played(scene)


def test_idle_groups_make_room_in_their_principals_budget() -> None:
    async def scene(made: Scene) -> None:
        used: set[str] = set()
        node = await made.node(1, is_used=used.__contains__).start()
        few, other_budget = (GroupBudget(owner=owner, groups=2) for owner in ("User:a", "User:b"))

        async def begin(group_id: str, budget: GroupBudget) -> str | GroupStanding:
            return await node.coordinating(group_id, answer, is_kept=False, budget=budget)

        used.update("ab")
        assert [await begin(name, few) for name in "ab"] == ["answer"] * 2
        assert await begin("c", few) is GroupStanding.OVER_BUDGET
        assert "c" not in made.store.claims
        assert await begin("c", other_budget) == "answer"
        assert await begin("a", few) == "answer", "it was begun before"
        used.discard("b")
        assert await begin("d", few) is GroupStanding.OVER_BUDGET, "it was asked for a moment ago"
        node._claims._held["b"].asked_at -= 2.0
        assert await begin("d", few) == "answer"
        assert "b" not in made.store.claims
        assert node.groups == 3

    played(scene)
