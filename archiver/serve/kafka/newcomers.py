"""Accepted clients of addresses over budget: they wait as one connection of their address."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from archiver.serve.kafka.client_turns import ClientTurns
from archiver.serve.kafka.loop_time import LoopTime

MOST_PER_ADDRESS: Final = 32
MOST: Final = 256


@dataclass(frozen=True, slots=True)
class Newcomer:
    client: socket.socket
    host: str
    port: int
    payer: str

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_gone(self) -> bool:
        try:
            return not self.client.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True


@dataclass(slots=True)
class _ParkedClients:
    task: asyncio.Task[None]
    clients: deque[tuple[float, Newcomer]] = field(default_factory=deque)


class Newcomers:
    """Use it from one event loop."""

    def __init__(self, loop_time: LoopTime, take: Callable[[Newcomer], None], *, seconds: float) -> None:
        """Clients that waited longer than `seconds` are closed at their turn."""
        self._loop_time = loop_time
        self._take = take
        self._seconds = seconds
        self._queues: dict[str, _ParkedClients] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def park(self, newcomer: Newcomer) -> Newcomer | None:
        """Return a client to close if there are too many."""
        loop = asyncio.get_running_loop()
        queue = self._queues.get(newcomer.payer)
        if queue is None:
            queue = self._queues[newcomer.payer] = _ParkedClients(loop.create_task(self._admit(newcomer.payer)))
        queue.clients.append((loop.time(), newcomer))
        self._count += 1
        if len(queue.clients) <= MOST_PER_ADDRESS and self._count <= MOST:
            return None
        _, displaced = queue.clients.popleft()
        displaced.client.close()
        self._count -= 1
        return displaced

    def close(self) -> None:
        for queue in self._queues.values():
            queue.task.cancel()
            self._close_clients(queue)
        self._queues.clear()

    async def _admit(self, payer: str) -> None:
        turns = ClientTurns(self._loop_time, payer)
        try:
            await turns.run(self._admit_in_turns(payer, turns))
        finally:
            queue = self._queues.get(payer)
            if queue is not None and queue.task is asyncio.current_task():
                del self._queues[payer]
                self._close_clients(queue)

    async def _admit_in_turns(self, payer: str, turns: ClientTurns) -> None:
        queue = self._queues[payer]
        while queue.clients:
            await turns.begin()
            while queue.clients:
                parked_at, newcomer = queue.clients.popleft()
                self._count -= 1
                is_late = asyncio.get_running_loop().time() - parked_at > self._seconds
                if is_late or newcomer.is_gone:
                    newcomer.client.close()
                    continue
                try:
                    self._take(newcomer)
                except BaseException:
                    newcomer.client.close()
                    raise
                break

    def _close_clients(self, queue: _ParkedClients) -> None:
        for _, newcomer in queue.clients:
            newcomer.client.close()
        self._count -= len(queue.clients)
        queue.clients.clear()
