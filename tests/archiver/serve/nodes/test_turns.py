"""Group writes keep their order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from archiver.serve.nodes import GroupDuty
from archiver.serve.nodes.turns import GroupTurns
from tests.support.servers.node_scene import Scene, played, until
from tests.support.timing.eventually import settle


def test_group_writes_keep_request_order() -> None:
    async def scene(made: Scene) -> None:
        node = await made.node(1).start()
        gate, kept = asyncio.Event(), []

        async def slow(_: GroupDuty) -> None:
            await gate.wait()
            kept.append("first")

        def quick(text: str) -> Callable[[GroupDuty], Coroutine[Any, Any, None]]:
            async def keep(_: GroupDuty) -> None:
                kept.append(text)

            return keep

        first = asyncio.ensure_future(node.coordinating("g", slow, is_kept=True))
        await until(lambda: node.groups == 1)
        first.cancel()  # its client is gone, and comes back on another connection
        second = asyncio.ensure_future(node.coordinating("g", quick("second"), is_kept=True))
        made.store.is_away = True
        third = asyncio.ensure_future(node.coordinating("g", quick("third"), is_kept=True))
        await node.coordinating("h", quick("of another group"), is_kept=True)
        made.store.is_away = False
        await node.coordinating("h", quick("of another group"), is_kept=True)
        assert kept == ["of another group"], "the registry was away at first"
        gate.set()
        await asyncio.gather(second, third)
        assert kept == ["of another group", "first", "second", "third"]

    played(scene)


def test_leaving_the_queue_lets_nothing_overtake() -> None:
    async def play() -> None:
        turns = GroupTurns()
        first, second, third = (turns.take("g") for _ in range(3))
        turns.end(second)
        coming = asyncio.ensure_future(third.come())
        await settle()
        assert not coming.done()
        turns.end(first)
        await asyncio.wait_for(coming, 1)
        turns.end(third)
        await turns.take("g").come()

    asyncio.run(play())


def test_a_node_that_leaves_first_ends_what_is_being_kept() -> None:
    async def scene(made: Scene) -> None:
        node = await made.node(1).start()
        gate, kept = asyncio.Event(), []

        async def slow(_: GroupDuty) -> None:
            await gate.wait()
            kept.append(made.store.live())

        asking = asyncio.ensure_future(node.coordinating("g", slow, is_kept=True))
        await until(lambda: node.groups == 1)
        leaving = asyncio.ensure_future(node.close())
        await asyncio.sleep(0.02)
        gate.set()
        await asking
        await leaving
        assert kept == [1]
        assert made.store.live() == 0

    played(scene)
