"""Nodes' leases, on a fake clock."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from archiver.errors import ConfigError
from archiver.serve.nodes import Beats, GroupStanding
from tests.support.servers.node_scene import BEATS, GROUPS, Scene, asked, both_settled, played, until
from tests.support.servers.nodes_in_memory import Line, NodesInMemory

SLOW = Beats(every=1.0, lost_after=5.0)


def test_node_without_lease_pauses_coordination() -> None:
    async def scene(made: Scene) -> None:
        node = await made.node(1).start()
        assert await asked(node, "g") == "answer"
        made.store.is_away = True
        await until(lambda: node.trouble is not None)
        made.clock.now += 4.9
        assert node.standing("g") is GroupStanding.COORDINATOR, "nobody else can have taken over yet"
        made.clock.now += 0.2
        assert node.standing("g") is GroupStanding.UNKNOWN
        assert await asked(node, "g") is GroupStanding.UNKNOWN
        assert made.let_go[1] == []
        made.store.is_away = False
        await until(lambda: node.is_leased)
        assert await asked(node, "g") == "answer"
        assert made.let_go[1] == [], "members are known as before"

    played(scene)


def test_the_share_of_a_lost_node_moves_and_the_node_learns_it() -> None:
    class Cut(NodesInMemory):
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
        own = [group for group in GROUPS if first.standing(group) is GroupStanding.COORDINATOR]
        for group in own:
            assert await asked(first, group) == "answer"
        epochs = {group: made.store.claims[group].epoch for group in own}
        cut.is_away = True
        await until(lambda: first.trouble is not None)
        made.clock.now += 5.1
        assert {first.standing(group) for group in GROUPS} == {GroupStanding.UNKNOWN}
        await until(lambda: len(second.members.nodes) == 1 and second.settled_for >= 0)
        for group in own:
            assert await asked(second, group) == "answer"
            assert made.store.claims[group].epoch > epochs[group], "what the lost node commits is refused"
        assert second.told == second.members
        cut.is_away = False
        await both_settled(first, second)
        assert sorted(made.let_go[1]) == sorted(own)
        assert first.own.node_id == 1

    played(scene)


def test_clients_of_a_departed_node_may_be_ahead() -> None:
    async def scene(made: Scene) -> None:
        first = await made.node(1).start()
        second = await made.node(2).start()
        await both_settled(first, second)
        for _ in range(20):
            made.clock.now += 4.0
            await until(lambda: all(node._membership._lease_until > made.clock.now + 4 for node in (first, second)))
        await second.close()
        await until(lambda: len(first.members.nodes) == 1 and first.is_leased)
        assert first.may_lag
        made.clock.now += 61.0
        await until(lambda: first.is_leased)
        assert not first.may_lag

    played(scene)


def test_node_without_lease_may_lag_behind_unknown_nodes() -> None:
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


def test_restarted_node_gets_its_id_and_serves_at_once() -> None:
    async def scene(made: Scene) -> None:
        real = made.node(1)
        await real._membership._step()  # joined, and then killed: no heartbeat follows
        second = await made.node(2).start()
        again = await made.node(1).start()
        assert again.own.node_id == 1
        assert again.standing("g") is GroupStanding.UNKNOWN
        assert [node.port for node in again.told.nodes] == [1, 2], (
            "clients lose connections to nodes that they don't hear of"
        )
        assert again.others is not None
        assert again.others.nodes == (second.own,)
        made.clock.now += 5.1
        await both_settled(again, second)
        assert {await asked(again, "g"), await asked(second, "g")} == {"answer", GroupStanding.OTHER}

    played(scene)


def test_clients_hear_of_a_node_once_all_others_know_it() -> None:
    async def scene(made: Scene) -> None:
        first = await made.node(1).start()
        line = Line(made.store)
        second = await made.node(2, store=line).start()
        await both_settled(first, second)
        line.is_away = True
        began = time.monotonic()
        third = await made.node(3).start()
        assert time.monotonic() - began >= 3 * BEATS.every, "who comes waits for the others, and not for ever"
        await until(lambda: len(first.members.nodes) == 3)
        for _ in range(5):
            await asyncio.sleep(BEATS.every)
            assert [len(node.told.nodes) for node in (first, second, third)] == [2, 2, 3]
        line.is_away = False
        await until(lambda: all(len(node.told.nodes) == 3 for node in (first, second)))
        await both_settled(first, second, third)
        await third.close()
        await until(lambda: all(len(node.told.nodes) == 2 for node in (first, second)))

    played(scene)


def test_who_asks_for_a_coordinator_waits_until_all_know_it() -> None:
    async def scene(made: Scene) -> None:
        first = await made.node(1, beats=SLOW).start()
        line = Line(made.store)
        await made.node(2, store=line, beats=SLOW).start()
        line.is_away = True
        third = made.node(3, beats=SLOW)
        await third._membership._step()
        await until(lambda: len(first.members.nodes) == 3)
        moves = next(group for group in GROUPS if first.members.coordinator(group) == third.own)
        stays = next(group for group in GROUPS if first.members.coordinator(group) == first.told.coordinator(group))
        began = time.monotonic()
        await first.agree_on([stays])
        assert time.monotonic() - began < SLOW.every / 2
        await first.agree_on([stays, moves])
        assert time.monotonic() - began > SLOW.every / 2
        assert first.told.coordinator(moves) != third.own, "it can't answer for the group yet"

    played(scene)


def test_without_a_registry_a_node_serves_alone() -> None:
    async def scene(made: Scene) -> None:
        made.store.is_away = True
        node = await made.node(1, node_id=3).start()
        assert [member.node_id for member in node.members.nodes] == [3]
        assert await asked(node, "g") is GroupStanding.UNKNOWN
        made.store.is_away = False
        await until(lambda: node.is_leased)
        assert await asked(node, "g") == "answer"

    played(scene)
