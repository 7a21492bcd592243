"""Waiting commits are kept together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.serve.groups import CommittedOffsets
from archiver.serve.nodes.duty import GroupDuty
from archiver.serve.nodes.joint_commits import JointCommits
from archiver.serve.nodes.turns import GroupTurns
from catalog.errors import OffsetBudgetReached, RegistryUnreachable
from catalog.registry import GroupClaim, GroupOffset
from tests.support.timing.eventually import settle

CLAIM = GroupClaim(cluster_id="c", node_id=1, epoch=1)


def at(offset: int, partition: int = 0) -> Mapping[tuple[str, int], GroupOffset]:
    return {("orders", partition): GroupOffset(topic_id=UUID(int=1), offset=offset)}


class Store:
    def __init__(self) -> None:
        self.calls: list[tuple[str, GroupClaim | None, dict[tuple[str, int], int]]] = []
        self.is_away = False

    async def keep(self, group_id: str, offsets: CommittedOffsets, claim: GroupClaim | None = None) -> None:
        recorded = {partition: offset.offset for partition, offset in offsets.items()}
        await settle(5)
        if self.is_away:
            raise RegistryUnreachable("the registry is away")
        self.calls.append((group_id, claim, recorded))


def test_waiting_commits_join_one_call_and_the_last_wins() -> None:
    async def scene() -> None:
        store, commits = Store(), JointCommits()
        await asyncio.gather(*(commits.commit(store.keep, "g", at(number, number % 3)) for number in range(50)))
        assert store.calls == [("g", None, {("orders", 0): 48, ("orders", 1): 49, ("orders", 2): 47})]
        first = asyncio.ensure_future(commits.commit(store.keep, "g", at(60)))
        await settle(2)
        await asyncio.gather(*(commits.commit(store.keep, "g", at(offset)) for offset in (61, 62)), first)
        assert [call[2] for call in store.calls[1:]] == [{("orders", 0): 60}, {("orders", 0): 62}]
        assert not commits._waiting
        assert not commits._keeping

    asyncio.run(scene())


def test_groups_commit_independently_with_their_own_claims() -> None:
    async def scene() -> None:
        store, commits = Store(), JointCommits()
        claims = [GroupClaim(cluster_id="c", node_id=1, epoch=item) for item in (1, 2)]

        async def commit(group: str, claim: GroupClaim, offset: int) -> None:
            await commits.commit(partial(store.keep, claim=claim), group, at(offset), duty=GroupDuty(claim))

        asked = [
            ("g", claims[0], 1),
            ("h", claims[0], 5),
            ("g", claims[0], 2),
            ("g", claims[1], 3),
            ("g", claims[0], 4),
        ]
        await asyncio.gather(*(commit(*item) for item in asked))
        of_g = [(claim, offsets["orders", 0]) for group, claim, offsets in store.calls if group == "g"]
        assert of_g == [(claims[0], 2), (claims[1], 3), (claims[0], 4)]
        assert ("h", claims[0], {("orders", 0): 5}) in store.calls

    asyncio.run(scene())


def test_failed_commits_are_reported_and_later_ones_kept() -> None:
    async def scene() -> None:
        store, commits = Store(), JointCommits()
        store.is_away = True
        failed = await asyncio.gather(
            *(commits.commit(store.keep, "g", at(number, number)) for number in range(3)), return_exceptions=True
        )
        assert [type(error) for error in failed] == [RegistryUnreachable] * 3
        store.is_away = False
        await commits.commit(store.keep, "g", at(1))
        assert store.calls == [("g", None, {("orders", 0): 1})]

    asyncio.run(scene())


def test_who_goes_away_stops_no_commit() -> None:
    async def scene() -> None:
        store, commits = Store(), JointCommits()
        gone, stays = (
            asyncio.ensure_future(commits.commit(store.keep, "g", at(number, number))) for number in range(2)
        )
        await settle(1)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        await stays
        assert store.calls == [("g", None, {("orders", 0): 0, ("orders", 1): 1})]

    asyncio.run(scene())


steps = st.lists(
    st.tuples(st.sampled_from(["commit", "commit", "commit", "forget", "refused"]), st.booleans()), max_size=30
)


@given(steps)
def test_commits_and_deletions_keep_request_order(
    asked: list[tuple[str, bool]],
) -> None:
    """As in the cluster: only a commit yields its turn while it waits for joint work."""

    async def scene() -> None:
        turns, store, commits = GroupTurns(), Store(), JointCommits()
        current: dict[tuple[str, int], int] = {}
        expected: dict[tuple[str, int], int] = {}

        async def keep(group_id: str, offsets: CommittedOffsets) -> None:
            await store.keep(group_id, offsets)
            current.update(store.calls[-1][2])

        async def act(what: str, number: int) -> None:
            turn = turns.take("g")
            try:
                if what == "refused":
                    return
                await turn.come(joins=what == "commit")
                if what == "forget":
                    await settle(3)
                    current.clear()
                    return
                await commits.commit(keep, "g", at(number), duty=GroupDuty(CLAIM, partial(turns.pass_on, turn)))
                acknowledged.append(number)
            finally:
                turns.end(turn)

        acknowledged: list[int] = []
        tasks = []
        for number, (what, waits) in enumerate(asked):
            tasks.append(asyncio.ensure_future(act(what, number)))
            await settle(9 if waits else 1)
            if what == "forget":
                expected.clear()
            elif what == "commit":
                expected["orders", 0] = number
        await asyncio.gather(*tasks)
        assert current == expected
        assert acknowledged == sorted(acknowledged)
        assert not turns._last

    asyncio.run(scene())


def test_a_commit_that_is_cut_off_holds_up_none_after_it() -> None:
    async def scene() -> None:
        commits, asked = JointCommits(), asyncio.Event()

        async def hang(_: str, __: CommittedOffsets) -> None:
            asked.set()
            await asyncio.Event().wait()

        waiting = [asyncio.ensure_future(commits.commit(hang, "g", at(item))) for item in (1, 2)]
        await asked.wait()
        late = asyncio.ensure_future(commits.commit(hang, "g", at(3)))
        await settle(1)
        commits._keeping["g"].cancel()
        outcomes = await asyncio.wait_for(asyncio.gather(*waiting, late, return_exceptions=True), 5)
        assert [type(item) for item in outcomes] == [asyncio.CancelledError] * 3
        store = Store()
        await asyncio.wait_for(commits.commit(store.keep, "g", at(4)), 5)
        assert store.calls == [("g", None, {("orders", 0): 4})]

    asyncio.run(scene())


def test_a_commit_is_refused_only_for_what_it_brings_itself() -> None:
    async def scene() -> None:
        commits, calls = JointCommits(), []

        async def keep(_: str, offsets: CommittedOffsets) -> None:
            calls.append(sorted(partition for _, partition in offsets))
            await settle(1)
            if ("orders", 7) in offsets:
                raise OffsetBudgetReached("no more", owner="User:a")

        first = asyncio.ensure_future(commits.commit(keep, "g", at(1)))
        await settle(1)
        outcomes = await asyncio.gather(
            *(commits.commit(keep, "g", at(1, partition), owner="a") for partition in (5, 7, 6)),
            commits.commit(keep, "g", at(1, 8), owner="b"),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [type(None), OffsetBudgetReached, type(None), type(None)]
        assert calls == [[0], [5, 6, 7], [5], [7], [6], [8]]
        await first
        assert not commits._waiting

    asyncio.run(scene())
