"""Nodes, coordinators and offsets in the registry."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from catalog.errors import CoordinatorDeposed, OffsetBudgetReached
from catalog.registry import ClaimOutcome, GroupClaim, GroupOffset, OffsetBudget, Registry, ServeNode
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

TOPIC_ID = UUID(int=1)


@pytest.fixture
def dsn(stack: Stack) -> str:
    return stack.database()


@pytest.fixture
def registry(dsn: str) -> Iterator[Registry]:
    with Registry(dsn, answers_within=5.0) as opened:
        yield opened


def node(node_id: int, port: int = 1) -> ServeNode:
    return ServeNode(node_id=node_id, host="here", port=port, incarnation=uuid4())


def test_nodes_come_and_go_by_the_databases_clock(dsn: str, registry: Registry) -> None:
    nodes = registry.serve_nodes
    first, second = node(1), node(2, 2)
    assert nodes.propose("c", host="here", port=1) == 1
    assert nodes.join("c", first, lost_after=60.0) is None
    assert nodes.propose("c", host="here", port=2) == 2
    assert nodes.join("c", second, lost_after=60.0) is None
    assert nodes.propose("other", host="here", port=2) == 1
    rejoined = nodes.join("c", node(1, 3), lost_after=1.0)
    assert rejoined is not None
    assert rejoined.incarnation == first.incarnation, "who lives keeps its id"

    def beat(one: ServeNode, seen: int = 0) -> Any:
        return nodes.beat("c", node_id=one.node_id, incarnation=one.incarnation, seen_view=seen)

    seen = beat(first, 2)
    assert [(member.node_id, member.seen_view) for member in seen.nodes] == [(1, 2), (2, 0)]
    assert (seen.number, nodes.give_up_lost("c")) == (2, False)
    with psycopg.connect(dsn) as elsewhere:
        elsewhere.execute("UPDATE serve_nodes SET heartbeat_at = heartbeat_at - interval '2 minutes' WHERE node_id = 2")
    assert [member.is_lost for member in beat(first).nodes] == [False, True]
    assert nodes.give_up_lost("c")
    assert not nodes.give_up_lost("c"), "once"
    assert beat(second) is None, "who was given up learns it"
    seen = beat(first, 1)
    assert (seen.number, [member.seen_view for member in seen.nodes]) == (3, [2])
    assert nodes.propose("c", host="here", port=2) == 2, "the id stays its address's"
    assert nodes.propose("c", host="here", port=9) == 3
    again = node(2, 2)
    assert nodes.join("c", again, lost_after=60.0) is None
    nodes.leave("c", node_id=2, incarnation=second.incarnation)
    assert len(beat(first).nodes) == 2, "a run that is over ends no other"
    nodes.leave("c", node_id=2, incarnation=again.incarnation)
    assert beat(first).number == 5


def test_nodes_arriving_at_once_are_one_set_in_each_view(registry: Registry) -> None:
    nodes = registry.serve_nodes
    views: dict[int, set[tuple[int, ...]]] = {}

    def come(port: int) -> int:
        while True:
            joining = node(nodes.propose("c", host="here", port=port), port)
            if nodes.join("c", joining, lost_after=60.0) is None:
                for _ in range(5):
                    seen = nodes.beat("c", node_id=joining.node_id, incarnation=joining.incarnation, seen_view=0)
                    assert seen is not None
                    views.setdefault(seen.number, set()).add(tuple(member.node_id for member in seen.nodes))
                return joining.node_id

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(come, range(8)))
    assert sorted(ids) == list(range(1, 9))
    assert all(len(view) == 1 for view in views.values())
    assert max(views) == 8


def claim_of(cluster_id: str, node_id: int, epoch: int) -> GroupClaim:
    return GroupClaim(cluster_id=cluster_id, node_id=node_id, epoch=epoch)


def kept(offset: int) -> dict[tuple[str, int], GroupOffset]:
    return {("orders", 0): GroupOffset(topic_id=TOPIC_ID, offset=offset)}


def test_offsets_of_a_deposed_coordinator_are_refused(registry: Registry) -> None:
    offsets = registry.group_offsets
    first, second = claim_of("c", 1, 4), claim_of("c", 2, 5)
    assert offsets.claim("g", first) is ClaimOutcome.TAKEN
    assert offsets.claim("g", first) is ClaimOutcome.TAKEN, "again"
    assert offsets.claim("g", claim_of("c", 2, 4)) is ClaimOutcome.REFUSED, "one node in a view"
    offsets.commit("c", "g", kept(1), claim=first)
    assert offsets.claim("g", second) is ClaimOutcome.TAKEN
    assert offsets.claim("g", first) is ClaimOutcome.REFUSED
    with pytest.raises(CoordinatorDeposed, match="another node"):
        offsets.commit("c", "g", kept(2), claim=first)
    with pytest.raises(CoordinatorDeposed):
        offsets.delete("c", "g", claim=first)
    with pytest.raises(CoordinatorDeposed):
        offsets.expire("c", "g", age=timedelta(0), claim=first)
    with pytest.raises(CoordinatorDeposed):
        offsets.commit("c", "h", kept(2), claim=second)
    assert offsets.load("c", "g") == kept(1)
    offsets.commit("c", "g", kept(3), claim=second)
    offsets.commit("c", "g", kept(4))
    assert offsets.load("c", "g") == kept(4), "tools of the operator carry no claim"


def test_new_coordinator_waits_for_commits_in_progress(stack: Stack) -> None:
    """Otherwise it would load offsets that the earlier coordinator then replaces."""
    dsn = stack.database()
    with Registry(dsn) as registry, psycopg.connect(dsn) as under_way:
        assert registry.group_offsets.claim("g", claim_of("c", 1, 1)) is ClaimOutcome.TAKEN
        under_way.execute("SELECT FROM group_coordinators FOR SHARE")
        taking = threading.Thread(target=lambda: registry.group_offsets.claim("g", claim_of("c", 2, 2)))
        taking.start()
        taking.join(0.3)
        assert taking.is_alive()
        under_way.commit()
        taking.join(10)
        assert not taking.is_alive()


def test_two_clusters_have_own_offsets_and_one_the_older_ones(stack: Stack) -> None:
    dsn = stack.database()
    with Registry(dsn) as registry, psycopg.connect(dsn, autocommit=True) as connection:
        offsets = registry.group_offsets
        first, second = claim_of("one", 1, 1), claim_of("other", 1, 1)
        offsets.claim("g", first)
        offsets.claim("g", second)
        offsets.commit("one", "g", kept(1), claim=first)
        assert offsets.other_clusters("other") == ("one",)
        assert offsets.other_clusters("one") == ()
        offsets.commit("other", "g", kept(2), claim=second)
        assert offsets.load("one", "g") == kept(1)
        assert offsets.delete("other", "g", claim=second) == 1
        assert offsets.load("one", "g") == kept(1)
        connection.execute("UPDATE group_offsets SET cluster_id = '', group_id = 'from before'")
        assert offsets.claim("from before", second, makes=False) is ClaimOutcome.TAKEN
        assert offsets.claim("from before", first, makes=False) is ClaimOutcome.UNUSED
        assert offsets.load("other", "from before") == kept(1)
        assert offsets.load("one", "from before") == {}


def test_claims_without_offsets_are_released(stack: Stack) -> None:
    dsn = stack.database()
    with Registry(dsn) as registry, psycopg.connect(dsn, autocommit=True) as connection:
        offsets = registry.group_offsets
        live = node(1, 1)
        assert registry.serve_nodes.join("c", live, lost_after=60.0) is None
        assert offsets.claim("made up", claim_of("c", 1, 1), makes=False) is ClaimOutcome.UNUSED
        for name in ("empty", "kept"):
            assert offsets.claim(name, claim_of("c", 1, 1)) is ClaimOutcome.TAKEN
        assert offsets.claim("left", claim_of("c", 2, 1)) is ClaimOutcome.TAKEN
        assert offsets.claim("of another cluster", claim_of("d", 1, 1)) is ClaimOutcome.TAKEN
        offsets.commit("c", "kept", kept(1), claim=claim_of("c", 1, 1))
        connection.execute("UPDATE group_coordinators SET claimed_at = now() - interval '8 days'")
        assert offsets.forget_left("c", node_id=3) == 1, "the one of a node that is gone"
        offsets.commit("c", "empty", {}, claim=claim_of("c", 1, 1))
        assert offsets.release("c", ("empty", "kept", "of another cluster"), node_id=2) == 0
        assert offsets.release("c", ("empty", "kept", "of another cluster"), node_id=1) == 1
        with pytest.raises(CoordinatorDeposed):
            offsets.commit("c", "empty", kept(1), claim=claim_of("c", 1, 1))
        offsets.commit("c", "kept", kept(2), claim=claim_of("c", 1, 1))


def test_offsets_expire_without_members_and_commits(stack: Stack) -> None:
    dsn, week = stack.database(), timedelta(days=7)
    with Registry(dsn) as registry, psycopg.connect(dsn, autocommit=True) as connection:
        offsets, claim = registry.group_offsets, claim_of("c", 1, 1)
        for name in ("idle", "used", "commits"):
            offsets.claim(name, claim)
            offsets.commit("c", name, kept(1), claim=claim)
        connection.execute("UPDATE group_offsets SET committed_at = now() - interval '8 days'")
        assert offsets.expired("c", age=week) == (), "claimed just now"
        connection.execute("UPDATE group_coordinators SET used_at = now() - interval '8 days'")
        offsets.use("c", ("used",))
        assert offsets.expired("c", age=week) == ("commits", "idle")
        assert offsets.expired("d", age=week) == ()
        offsets.commit("c", "commits", {("orders", 1): GroupOffset(topic_id=TOPIC_ID, offset=1)}, claim=claim)
        assert [offsets.expire("c", group, age=week, claim=claim) for group in ("idle", "used", "commits")] == [1, 0, 0]
        assert offsets.groups("c") == ("commits", "used")


def test_offsets_of_an_owner_stay_within_its_budget(stack: Stack) -> None:
    dsn = stack.database()
    with Registry(dsn) as registry, psycopg.connect(dsn, autocommit=True) as connection:
        offsets, claim = registry.group_offsets, claim_of("c", 1, 1)
        few = OffsetBudget(owner="User:a", groups=3, bytes=2000)

        def commit(group: str, budget: OffsetBudget, *, size: int = 0, partition: int = 0) -> None:
            offsets.claim(group, claim)
            kept = {("orders", partition): GroupOffset(topic_id=TOPIC_ID, offset=1, metadata="m" * size)}
            offsets.commit("c", group, kept, claim=claim, budget=budget)

        def noted() -> dict[str, tuple[str, int]]:
            rows = connection.execute("SELECT group_id, owner, offset_bytes FROM group_coordinators").fetchall()
            return {group: (owner, size) for group, owner, size in rows}

        commit("g0", few)
        ((owner, size),) = noted().values()
        assert (owner, size) == ("User:a", 240 + 2 * (2 + 6))
        commit("g1", few)
        commit("g2", few)
        with pytest.raises(OffsetBudgetReached, match="archiver groups delete") as caught:
            commit("g3", few)
        assert caught.value.context["groups"] == 4
        assert not caught.value.retryable
        assert offsets.load("c", "g3") == {}
        commit("g3", replace(few, owner="User:b"))
        commit("g0", few, size=1000)
        with pytest.raises(OffsetBudgetReached) as caught:
            commit("g1", few, size=500)
        assert caught.value.context["bytes"] > caught.value.context["most_bytes"] == 2000
        commit("g1", few)
        commit("g0", few, size=1000)
        commit("g0", few, size=10)
        commit("g1", few, size=500)
        assert sum(size for owner, size in noted().values() if owner == "User:a") == 3 * 256 + 510
        offsets.delete("c", "g0", claim=claim)
        assert noted()["g0"][1] == 0
        commit("g4", few)
        connection.execute("UPDATE group_offsets SET committed_at = now() - interval '1 day' WHERE group_id = 'g4'")
        connection.execute("UPDATE group_coordinators SET used_at = now() - interval '1 day'")
        assert offsets.expire("c", "g4", age=timedelta(hours=1), claim=claim) == 1
        assert noted()["g4"][1] == 0


def test_growing_group_needs_a_budget_for_all_its_offsets(stack: Stack) -> None:
    with Registry(stack.database()) as registry:
        offsets, claim = registry.group_offsets, claim_of("c", 1, 1)
        small, large = (OffsetBudget(owner=name, groups=10, bytes=size) for name, size in (("a", 600), ("b", 10_000)))
        offsets.claim("g", claim)
        offsets.commit("c", "g", kept(1), claim=claim)  # as versions before budgets did
        more = {("orders", partition): GroupOffset(topic_id=TOPIC_ID, offset=1) for partition in range(3)}
        offsets.commit("c", "g", kept(2), claim=claim, budget=replace(small, bytes=1))
        with pytest.raises(OffsetBudgetReached):
            offsets.commit("c", "g", more, claim=claim, budget=small)
        offsets.commit("c", "g", more, claim=claim, budget=large)
        offsets.commit("c", "g", more, claim=claim, budget=small)
        assert offsets.load("c", "g") == more
        offsets.claim("h", claim)
        offsets.commit("c", "h", kept(1), claim=claim, budget=small)
