"""How partitions and groups are spread."""

from __future__ import annotations

from uuid import UUID

from archiver.serve.nodes import Members, Node

TOPIC = UUID(int=7)


def members(*ids: int) -> Members:
    return Members(number=1, nodes=tuple(Node(node_id=node_id, host="h", port=node_id) for node_id in ids))


def leaders(of: Members) -> list[int]:
    return [of.leaders(TOPIC, number)[0].node_id for number in range(3_000)]


def test_each_node_has_about_the_same_share() -> None:
    leading = leaders(members(1, 2, 3))
    assert all(900 < leading.count(node_id) < 1_100 for node_id in (1, 2, 3))


def test_what_a_lost_node_had_moves_and_nothing_else() -> None:
    before, after = leaders(members(1, 2, 3)), leaders(members(1, 3))
    assert all(new == old for old, new in zip(before, after, strict=True) if old != 2)
    moved = [new for old, new in zip(before, after, strict=True) if old == 2]
    assert 0.4 < moved.count(1) / len(moved) < 0.6
    groups = [f"group {number}" for number in range(500)]
    stay = [group for group in groups if members(1, 2, 3).coordinator(group).node_id != 2]
    assert all(members(1, 2, 3).coordinator(name) == members(1, 3).coordinator(name) for name in stay)


def test_replicas_are_other_nodes_that_lead_next() -> None:
    replicas = members(1, 2, 3, 4).leaders(TOPIC, 0)
    assert len({node.node_id for node in replicas}) == 3
    left = members(*({1, 2, 3, 4} - {replicas[0].node_id}))
    assert left.leaders(TOPIC, 0)[0].node_id == replicas[1].node_id


def test_any_name_of_a_group_has_a_node() -> None:
    assert members(1, 2).coordinator("\udcff") in members(1, 2).nodes
