"""Nodes of one cluster in one process, on a clock that the tests move: leases, views, and one coordinator at a time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from archiver.errors import ConfigError
from archiver.serve.nodes import Beats, Cluster, Need, Standing
from archiver.serve.nodes.fenced_offsets import CLAIM
from archiver.serve.nodes.turns import Turns
from tests.support.servers.nodes_in_memory import NodesInMemory

BEATS = Beats(every=0.01, lost_after=5.0)
GROUPS = [f"group {each}" for each in range(40)]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Scene:
    """A store, its clock, and nodes that are closed at the end."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = NodesInMemory(self.clock)
        self.let_go: dict[int, list[str]] = {}
        self._open: list[Cluster] = []

    def node(self, port: int, *, store: Any = None, **options: Any) -> Cluster:
        gone = self.let_go.setdefault(port, [])
        made = Cluster(
            "c", store or self.store, host="h", port=port, beats=BEATS, let_go=gone.append, clock=self.clock, **options
        )
        self._open.append(made)
        return made

    async def close(self) -> None:
        for each in self._open:
            await each.close()


def played(scene: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        made = Scene()
        try:
            async with asyncio.timeout(20):
                await scene(made)
        finally:
            await made.close()

    asyncio.run(play())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - any state of any node
        await asyncio.sleep(0.002)


async def both_settled(*nodes: Cluster) -> None:
    await until(lambda: all(each.settled_for >= 0 and len(each.members.nodes) == len(nodes) for each in nodes))


async def answer() -> str:
    return "answer"


async def asked(node: Cluster, group: str) -> Any:
    return await node.coordinating(group, answer, is_kept=False)


def test_one_node_coordinates_everything_at_once() -> None:
    async def scene(made: Scene) -> None:
        node = await made.node(1).start()
        assert node.own.node_id == 1
        assert [await asked(node, each) for each in GROUPS] == ["answer"] * len(GROUPS)
        assert not node.may_lag

    played(scene)


def test_each_group_has_one_coordinator_and_a_node_that_comes_takes_its_share() -> None:
    async def scene(made: Scene) -> None:
        first = await made.node(1).start()
        for each in GROUPS:
            await asked(first, each)
        second = await made.node(2).start()
        await both_settled(first, second)
        assert first.members == second.members
        answers = [(await asked(first, each), await asked(second, each)) for each in GROUPS]
        assert set(answers) == {("answer", Standing.OTHER), (Standing.OTHER, "answer")}
        moved = [group for group, found in zip(GROUPS, answers, strict=True) if found[1] == "answer"]
        assert sorted(made.let_go[1]) == sorted(moved)
        assert first.may_lag
        assert second.may_lag

    played(scene)


def test_nothing_is_taken_over_before_the_other_has_let_go() -> None:
    """A node that lives but hasn't heard of the view yet may still coordinate."""

    class Deaf(NodesInMemory):
        """Shares everything with a store, and tells of no other view while it is deaf."""

        def __init__(self, real: NodesInMemory) -> None:
            self.__dict__ = real.__dict__
            self.is_deaf = False
            self.last: Any = None

        def beat(self, node: Any, *, seen_view: int) -> Any:
            found = super().beat(node, seen_view=seen_view)
            if not self.is_deaf:
                self.last = found
            return self.last

    async def scene(made: Scene) -> None:
        deaf = Deaf(made.store)
        first = await made.node(1, store=deaf).start()
        for each in GROUPS:
            assert await asked(first, each) == "answer"
        deaf.is_deaf = True
        second = await made.node(2).start()
        own = [each for each in GROUPS if second.standing(each) is Standing.LOADING]
        assert own
        await asyncio.sleep(0.1)
        assert await asked(second, own[0]) is Standing.LOADING
        assert await asked(first, own[0]) == "answer"
        deaf.is_deaf = False
        await both_settled(first, second)
        assert await asked(first, own[0]) is Standing.OTHER
        assert await asked(second, own[0]) == "answer"

    played(scene)


def test_a_node_without_its_lease_coordinates_nothing_and_goes_on_with_it() -> None:
    async def scene(made: Scene) -> None:
        node = await made.node(1).start()
        assert await asked(node, "g") == "answer"
        made.store.is_away = True
        await until(lambda: node.trouble is not None)
        made.clock.now += 4.9
        assert node.standing("g") is Standing.COORDINATOR, "nobody else can have taken over yet"
        made.clock.now += 0.2
        assert node.standing("g") is Standing.UNKNOWN
        assert await asked(node, "g") is Standing.UNKNOWN
        assert made.let_go[1] == []
        made.store.is_away = False
        await until(lambda: node.is_leased)
        assert await asked(node, "g") == "answer"
        assert made.let_go[1] == [], "members are known as before"

    played(scene)


def test_the_share_of_a_lost_node_moves_and_the_node_learns_it() -> None:
    class Cut(NodesInMemory):
        """Shares everything with a store, and can be cut off from it."""

        def __init__(self, real: NodesInMemory) -> None:
            self.__dict__ = dict(real.__dict__)
            self._real = real

        def beat(self, node: Any, *, seen_view: int) -> Any:
            with self._there():
                pass
            return self._real.beat(node, seen_view=seen_view)

        def join(self, node: Any, *, lost_after: float) -> Any:
            return self._real.join(node, lost_after=lost_after)

        def claim(self, group_id: str, **wanted: Any) -> Any:
            return self._real.claim(group_id, **wanted)

    async def scene(made: Scene) -> None:
        cut = Cut(made.store)
        first = await made.node(1, store=cut).start()
        second = await made.node(2).start()
        await both_settled(first, second)
        own = [each for each in GROUPS if first.standing(each) is Standing.COORDINATOR]
        for each in own:
            assert await asked(first, each) == "answer"
        epochs = {each: made.store.claims[each].epoch for each in own}
        cut.is_away = True
        await until(lambda: first.trouble is not None)
        made.clock.now += 5.1
        assert {first.standing(each) for each in GROUPS} == {Standing.UNKNOWN}
        await until(lambda: len(second.members.nodes) == 1 and second.settled_for >= 0)
        for each in own:
            assert await asked(second, each) == "answer"
            assert made.store.claims[each].epoch > epochs[each], "what the lost node commits is refused"
        cut.is_away = False
        await both_settled(first, second)
        assert sorted(made.let_go[1]) == sorted(own)
        assert first.own.node_id == 1

    played(scene)


def test_who_waits_for_a_rebalance_is_told_when_the_group_moves() -> None:
    async def scene(made: Scene) -> None:
        first = await made.node(1).start()
        ended: list[str] = []

        async def endless() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                ended.append("ended")

        waiting = {each: asyncio.ensure_future(first.coordinating(each, endless, is_kept=False)) for each in GROUPS}
        await until(lambda: first.groups == len(GROUPS))
        second = await made.node(2).start()
        await both_settled(first, second)
        moved = [each for each in GROUPS if second.standing(each) is Standing.COORDINATOR]
        assert moved
        for each in moved:
            assert await waiting[each] is Standing.OTHER
        await until(lambda: len(ended) == len(moved))
        left = [each for each in waiting.values() if not each.done()]
        assert len(left) == len(GROUPS) - len(moved)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        assert len(ended) == len(GROUPS), "a connection that ends takes its request with it"

    played(scene)


def test_claims_that_waited_through_a_change_of_the_view_are_made_by_the_coordinator_of_that_view() -> None:
    class Slow(NodesInMemory):
        """Shares everything with a store, and lets claims wait."""

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
        asking = [asyncio.ensure_future(asked(first, each)) for each in GROUPS]
        await asyncio.get_running_loop().run_in_executor(None, slow.waiting.acquire)
        second = await made.node(2).start()
        await both_settled(first, second)
        moved = [each for each in GROUPS if second.standing(each) is Standing.COORDINATOR]
        assert len(moved) > 2, "some are still in the queue"
        slow.gate.set()
        told = await asyncio.gather(*asking)
        assert [each for each, answer in zip(GROUPS, told, strict=True) if answer is Standing.OTHER] == moved
        assert [await asked(second, each) for each in moved] == ["answer"] * len(moved)
        for group, claim in made.store.claims.items():
            assert claim.node_id == second.members.coordinator(group).node_id

    played(scene)


def test_clients_of_a_node_that_left_may_know_more_for_a_while_though_nobody_asked_before() -> None:
    async def scene(made: Scene) -> None:
        first = await made.node(1).start()
        second = await made.node(2).start()
        await both_settled(first, second)
        for _ in range(20):
            made.clock.now += 4.0
            await until(lambda: all(each._membership._lease_until > made.clock.now + 4 for each in (first, second)))
        await second.close()
        await until(lambda: len(first.members.nodes) == 1 and first.is_leased)
        assert first.may_lag
        made.clock.now += 61.0
        await until(lambda: first.is_leased)
        assert not first.may_lag

    played(scene)


def test_a_node_without_its_lease_may_lag_behind_nodes_that_it_does_not_know() -> None:
    async def scene(made: Scene) -> None:
        made.store.is_away = True
        node = await made.node(1).start()
        assert node.may_lag
        made.store.is_away = False
        await until(lambda: node.is_leased)
        assert not node.may_lag
        made.store.is_away = True
        made.clock.now += 5.1
        assert node.may_lag

    played(scene)


def test_requests_carry_the_claim_that_they_came_with() -> None:
    async def scene(made: Scene) -> None:
        node = await made.node(1).start()

        async def claim() -> Any:
            return CLAIM.get()

        found = await node.coordinating("g", claim, is_kept=True)
        assert found == made.store.claims["g"]
        assert CLAIM.get() is None
        node.refused("g", found)
        await until(lambda: node.groups == 0)
        assert made.let_go[1] == ["g"]
        assert await asked(node, "g") == "answer", "it is claimed again"

    played(scene)


def test_what_is_kept_of_a_group_is_kept_in_the_order_in_which_it_was_asked_for() -> None:
    async def scene(made: Scene) -> None:
        node = await made.node(1).start()
        gate, kept = asyncio.Event(), []

        async def slow() -> None:
            await gate.wait()
            kept.append("first")

        def quick(text: str) -> Callable[[], Coroutine[Any, Any, None]]:
            async def keep() -> None:
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


def test_who_gives_up_in_the_queue_lets_nobody_before_those_ahead() -> None:
    async def play() -> None:
        turns = Turns()
        first, second, third = (turns.take("g") for _ in range(3))
        turns.end(second)
        coming = asyncio.ensure_future(third.come())
        await asyncio.sleep(0.01)
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

        async def slow() -> None:
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


def test_names_that_clients_make_up_leave_nothing_behind() -> None:
    async def scene(made: Scene) -> None:
        node = await made.node(1).start()
        for need in (Need.MEMBERS, Need.OFFSETS):
            found = await node.coordinating("made up", answer, is_kept=False, need=need)
            assert found is Standing.UNUSED
        assert made.store.claims == {}
        assert node.groups == 0
        made.store.with_offsets.add("kept")
        assert await node.coordinating("kept", answer, is_kept=False, need=Need.OFFSETS) == "answer"

    played(scene)


def test_groups_that_nobody_uses_are_given_up_and_claimed_again_when_they_are_asked_for() -> None:
    async def scene(made: Scene) -> None:
        node = await made.node(1, is_used={"with members"}.__contains__).start()
        for each in ("with members", "with offsets", "with neither"):
            assert await asked(node, each) == "answer"
        made.store.with_offsets.add("with offsets")
        assert await node.release_unused(60.0) == 0, "they were asked for a moment ago"
        assert await node.release_unused(0.0) == 2
        assert set(made.store.claims) == {"with members", "with offsets"}
        assert node.groups == 1
        assert await asked(node, "with neither") == "answer"

    played(scene)


def test_two_nodes_with_one_id_are_refused() -> None:
    async def scene(made: Scene) -> None:
        await made.node(1, node_id=7).start()
        second = made.node(2, node_id=7)
        starting = asyncio.ensure_future(second.start())
        await asyncio.sleep(0.05)
        made.clock.now += 4.0
        await asyncio.sleep(0.05)
        assert not starting.done(), "the other may be a run that ended just now"
        for _ in range(4):
            made.clock.now += 4.0
            await asyncio.sleep(0.05)
        with pytest.raises(ConfigError, match="another node lives with this id"):
            await starting

    played(scene)


def test_a_node_that_was_killed_has_its_id_again_and_is_served_from_at_once() -> None:
    async def scene(made: Scene) -> None:
        real = made.node(1)
        await real._membership._step()  # joined, and then killed: no heartbeat follows
        again = await made.node(1).start()
        assert again.own.node_id == 1
        assert again.standing("g") is Standing.UNKNOWN
        made.clock.now += 5.1
        await until(lambda: again.is_leased)
        assert await asked(again, "g") == "answer"

    played(scene)


def test_without_a_registry_a_node_serves_alone() -> None:
    async def scene(made: Scene) -> None:
        made.store.is_away = True
        node = await made.node(1, node_id=3).start()
        assert [each.node_id for each in node.members.nodes] == [3]
        assert await asked(node, "g") is Standing.UNKNOWN
        made.store.is_away = False
        await until(lambda: node.is_leased)
        assert await asked(node, "g") == "answer"

    played(scene)
