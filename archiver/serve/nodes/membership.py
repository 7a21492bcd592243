"""This node's heartbeats, leases and views.

An accepted heartbeat is a lease: for `lost_after` seconds from before it was sent, no other node gives this one up.
Clocks need not agree. A view that all nodes confirmed is settled. Clients see only these: from differing views,
librdkafka would close connections with requests in flight.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, ParamSpec, TypeVar
from uuid import uuid4

from archiver.errors import ConfigError
from archiver.serve.nodes.members import Members, Node, NodeAddress
from archiver.serve.nodes.node_store import NodeStore
from catalog.registry import ServeNode, ServeView
from schema_mapping.errors import ContextError

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_LOG = logging.getLogger(__name__)
_UNSETTLED_PACE: Final = 20
"""How many times faster heartbeats are while a view isn't settled: nodes show different views then."""
_PATIENCE: Final = 3
"""For how many times `lost_after` an id that another run holds is waited for."""
_LEAVE_SECONDS: Final = 3.0
_KNOWN_AFTER: Final = 3
"""After how many heartbeats all other nodes know at the latest that one has come or left."""
_FIRST_ID: Final = 1


def boot_clock() -> float:
    """Return monotonic seconds, including sleep if the system can."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beats:
    """Heartbeat interval, and seconds until a node is lost."""

    every: float = 1.0
    lost_after: float = 5.0


class Membership:
    """Use it from one event loop."""

    def __init__(
        self,
        store: NodeStore,
        address: NodeAddress,
        *,
        beats: Beats,
        on_change: Callable[[], None],
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        """Without a configured id, the store proposes one.

        `on_change`: the view changed or this node is lost. The next heartbeat confirms that its work is done.
        """
        self._store = store
        self._address = address
        self._beats = beats
        self._on_change = on_change
        self._clock = clock
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="heartbeats")
        self._run: ServeNode | None = None
        self._lease_until = float("-inf")
        self._refused_since: tuple[ServeNode, float] | None = None
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._settled_at = float("inf")
        self.trouble: ContextError | None = None
        self.own = self._node(_FIRST_ID if address.node_id is None else address.node_id)
        self.members = Members(number=0, nodes=(self.own,))
        self.told = self.members
        self._is_new = False

    def _node(self, number: int) -> Node:
        return Node(node_id=number, host=self._address.host, port=self._address.port)

    @property
    def is_joined(self) -> bool:
        return self._run is not None

    @property
    def is_leased(self) -> bool:
        """Whether no other node can have this node's groups."""
        return self._run is not None and self._clock() < self._lease_until

    @property
    def settled_for(self) -> float:
        """Seconds since all nodes know the view; negative infinity if not all do."""
        return self._clock() - self._settled_at if self.is_leased and self.members.is_settled else float("-inf")

    async def start(self) -> None:
        """Join, and wait until the other nodes show this one to clients.

        Returns early to wait for the registry, an earlier run or a silent node. Raises ConfigError if another node has
        the id.
        """
        await self._step()
        while self.trouble is None and self._refused_since and not self._is_at_this_address(self._refused_since[0]):
            await asyncio.sleep(self._beats.every)
            await self._step()
        await self._become_known()
        self._task = asyncio.get_running_loop().create_task(self._keep_on())

    async def ended(self) -> None:
        assert self._task is not None
        await asyncio.shield(self._task)

    async def settled(self, seconds: float) -> bool:
        """False after `seconds` without agreement."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._settled.wait()
        return self.members.is_settled

    async def close(self) -> None:
        """Wait until the other nodes know."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        run = self._run
        self._lose()
        if run is not None:
            with suppress(ContextError, TimeoutError):
                async with asyncio.timeout(_LEAVE_SECONDS):
                    await self._call(self._store.leave, run)
                async with asyncio.timeout(_KNOWN_AFTER * self._beats.every):
                    await self._until_known()
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.get_running_loop().run_in_executor(None, self._store.close)

    async def _become_known(self) -> None:
        pace, loop = self._beats.every / _UNSETTLED_PACE, asyncio.get_running_loop()
        until = loop.time() + _KNOWN_AFTER * self._beats.every
        while self.is_joined and self.trouble is None and not self.members.is_settled and loop.time() < until:
            await asyncio.sleep(pace)
            await self._step()
        if self.members.is_settled and len(self.members.nodes) > 1:
            await asyncio.sleep(pace)  # the other nodes learn of it with their next heartbeat

    async def _until_known(self) -> None:
        while True:
            seen = await self._call(self._store.who_is_there)
            is_known = all(node.is_lost or node.seen_view >= seen.number for node in seen.nodes)
            if not is_known or seen.nodes:
                await asyncio.sleep(self._beats.every / _UNSETTLED_PACE)
            if is_known:  # and shown: the last one to know says so, and each node learns it with its next heartbeat
                return

    async def _keep_on(self) -> None:
        while True:
            is_hasty = self.is_leased and not self.members.is_settled
            await asyncio.sleep(self._beats.every / _UNSETTLED_PACE if is_hasty else self._beats.every)
            await self._step()

    async def _step(self) -> None:
        try:
            if self._run is None:
                await self._join()
            if self._run is not None and await self._beat(self._run):
                await self._beat(self._run)  # the other nodes wait for the confirmation
        except ConfigError:
            raise
        except ContextError as error:
            if type(error) is not type(self.trouble):
                _LOG.warning("the nodes of the cluster can't be asked for", exc_info=error)
            self.trouble = error
        else:
            self.trouble = None

    async def _join(self) -> None:
        number = self._address.node_id
        if number is None:
            number = await self._call(self._store.propose, host=self._address.host, port=self._address.port)
        run = ServeNode(node_id=number, host=self._address.host, port=self._address.port, incarnation=uuid4())
        holder = await self._call(self._store.join, run, lost_after=self._beats.lost_after)
        self._set_own(number)
        if holder is None:
            self._run, self._refused_since = run, None
            self._is_new = True
            _LOG.info("joined as node %d at %s:%d", number, self._address.host, self._address.port)
            return
        self._refused(holder)
        if self._is_at_this_address(holder):
            seen = await self._call(self._store.who_is_there)
            if seen.nodes:
                self.told = Members(number=seen.number, nodes=_nodes(seen))

    def _refused(self, holder: ServeNode) -> None:
        refusal = self._refused_since
        if refusal is None or refusal[0].incarnation != holder.incarnation:
            refusal = holder, self._clock()
        self._refused_since = refusal
        if self._clock() - refusal[1] > _PATIENCE * self._beats.lost_after:
            what = "address: give each its own `advertise`" if self._is_at_this_address(holder) else "id"
            raise ConfigError(
                f"another node lives with this {what}; each node needs its own `node_id`, or none, to be given one",
                key="serve.node_id",
                node=holder.node_id,
                address=f"{holder.host}:{holder.port}",
            )

    async def _beat(self, run: ServeNode) -> bool:
        sent = self._clock()
        seen = await self._call(self._store.beat, run, seen_view=self.members.number)
        if seen is None:
            _LOG.warning("node %d was declared lost by another node, and joins the cluster again", run.node_id)
            self._lose()
            return False
        self._lease_until = sent + self._beats.lost_after
        is_other = self._take_in(seen)
        lost = [node for node in seen.nodes if node.is_lost and node.incarnation != run.incarnation]
        is_given_up = await self._call(self._store.give_up_lost) if lost else False
        if is_given_up:
            _LOG.warning(
                "nodes %s are declared lost: their heartbeats are overdue",
                ", ".join(str(node.node_id) for node in lost),
            )
            return True
        return is_other

    def _take_in(self, seen: ServeView) -> bool:
        is_settled = all(node.seen_view >= seen.number for node in seen.nodes)
        is_other = seen.number != self.members.number
        if is_settled and (is_other or not self.members.is_settled):
            self._settled_at = self._clock()
        self.members = Members(number=seen.number, nodes=_nodes(seen), is_settled=is_settled)
        if is_settled or self._is_new:  # a joining node knows all other nodes, and what it showed before may be old
            self.told, self._is_new = self.members, False
        if is_settled:
            self._settled.set()
        else:
            self._settled.clear()
        if is_other:
            self._on_change()
        return is_other

    def _lose(self) -> None:
        self._run = None
        self._lease_until = float("-inf")
        self._settled.clear()
        self.members = Members(number=self.members.number, nodes=self.members.nodes)
        self._on_change()

    def _set_own(self, number: int) -> None:
        if self.own.node_id != number:
            self.own = self._node(number)
            if self._run is None and self.members.number == 0:
                self.members = self.told = Members(number=0, nodes=(self.own,))

    def _is_at_this_address(self, other: ServeNode) -> bool:
        return (other.host, other.port) == (self._address.host, self._address.port)

    async def _call(
        self, function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: function(*args, **kwargs))


def _nodes(seen: ServeView) -> tuple[Node, ...]:
    return tuple(Node(node_id=node.node_id, host=node.host, port=node.port) for node in seen.nodes)
