"""Each group has one coordinator."""

from __future__ import annotations

import asyncio
from typing import Any

from archiver.serve.nodes import GroupDuty, GroupStanding
from tests.support.servers.node_scene import GROUPS, Scene, asked, both_settled, played, until
from tests.support.servers.nodes_in_memory import NodesInMemory


def test_one_node_coordinates_everything_at_once() -> None:
    async def scene(made: Scene) -> None:
        node = await made.node(1).start()
        assert node.own.node_id == 1
        assert [await asked(node, group) for group in GROUPS] == ["answer"] * len(GROUPS)
        assert not node.may_lag

    played(scene)


def test_joining_node_takes_its_share_of_groups() -> None:
    async def scene(made: Scene) -> None:
        first = await made.node(1).start()
        for name in GROUPS:
            await asked(first, name)
        second = await made.node(2).start()
        await both_settled(first, second)
        assert first.members == second.members
        answers = [(await asked(first, name), await asked(second, name)) for name in GROUPS]
        assert set(answers) == {("answer", GroupStanding.OTHER), (GroupStanding.OTHER, "answer")}
        moved = [group for group, answered in zip(GROUPS, answers, strict=True) if answered[1] == "answer"]
        assert sorted(made.let_go[1]) == sorted(moved)
        assert first.may_lag
        assert second.may_lag

    played(scene)


def test_nothing_is_taken_over_before_the_other_has_let_go() -> None:
    """A live node with an old view may still coordinate."""

    class Deaf(NodesInMemory):
        def __init__(self, real: NodesInMemory) -> None:
            self.__dict__ = real.__dict__
            self.is_deaf = False
            self.last: Any = None

        def beat(self, node: Any, *, seen_view: int) -> Any:
            answer = super().beat(node, seen_view=seen_view)
            if not self.is_deaf:
                self.last = answer
            return self.last

    async def scene(made: Scene) -> None:
        deaf = Deaf(made.store)
        first = await made.node(1, store=deaf).start()
        for group in GROUPS:
            assert await asked(first, group) == "answer"
        deaf.is_deaf = True
        second = await made.node(2).start()
        own = [group for group in GROUPS if second.standing(group) is GroupStanding.LOADING]
        assert own
        await asyncio.sleep(0.1)
        assert await asked(second, own[0]) is GroupStanding.LOADING
        assert await asked(first, own[0]) == "answer"
        deaf.is_deaf = False
        await both_settled(first, second)
        assert await asked(first, own[0]) is GroupStanding.OTHER
        assert await asked(second, own[0]) == "answer"

    played(scene)


def test_who_waits_for_a_rebalance_is_told_when_the_group_moves() -> None:
    async def scene(made: Scene) -> None:
        first = await made.node(1).start()
        ended: list[str] = []

        async def endless(_: GroupDuty) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("ended")

        waiting = {item: asyncio.ensure_future(first.coordinating(item, endless, is_kept=False)) for item in GROUPS}
        await until(lambda: first.groups == len(GROUPS))
        second = await made.node(2).start()
        await both_settled(first, second)
        moved = [item for item in GROUPS if second.standing(item) is GroupStanding.COORDINATOR]
        assert moved
        for item in moved:
            assert await waiting[item] is GroupStanding.OTHER
        await until(lambda: len(ended) == len(moved))
        left = [item for item in waiting.values() if not item.done()]
        assert len(left) == len(GROUPS) - len(moved)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        assert len(ended) == len(GROUPS), "a connection that ends takes its request with it"

    played(scene)
