"""Nodes of one cluster on a manual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from archiver.serve.nodes import Beats, GroupDuty, NodeAddress, NodeCluster
from tests.support.servers.nodes_in_memory import NodesInMemory
from tests.support.timing.eventually import until

BEATS = Beats(every=0.01, lost_after=5.0)
GROUPS = [f"group {number}" for number in range(40)]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Scene:
    def __init__(self) -> None:
        self.clock = Clock()
        self.store = NodesInMemory(self.clock)
        self.let_go: dict[int, list[str]] = {}
        self._open: list[NodeCluster] = []

    def node(self, port: int, *, node_id: int | None = None, store: Any = None, **options: Any) -> NodeCluster:
        gone = self.let_go.setdefault(port, [])
        defaults = {"beats": BEATS, "let_go": gone.append, "clock": self.clock}
        address = NodeAddress(host="h", port=port, node_id=node_id)
        made = NodeCluster("c", store or self.store, address, **defaults | options)
        self._open.append(made)
        return made

    async def close(self) -> None:
        for connection in self._open:
            await connection.close()


def played(scene: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        made = Scene()
        try:
            async with asyncio.timeout(20):
                await scene(made)
        finally:
            await made.close()

    asyncio.run(play())


async def both_settled(*nodes: NodeCluster) -> None:
    await until(lambda: all(node.settled_for >= 0 and len(node.members.nodes) == len(nodes) for node in nodes))


async def answer(_: GroupDuty) -> str:
    return "answer"


async def asked(node: NodeCluster, group: str) -> Any:
    return await node.coordinating(group, answer, is_kept=False)
