from __future__ import annotations

from uuid import UUID

from archiver.telemetry.serving import GroupLag, KnownOffsets
from catalog.registry import GroupOffset


def offsets(**by_topic: int) -> dict[tuple[str, int], GroupOffset]:
    return {(topic, 0): GroupOffset(topic_id=UUID(int=1), offset=offset) for topic, offset in by_topic.items()}


def test_the_lag_of_groups_is_what_they_have_not_committed() -> None:
    committed = KnownOffsets()
    committed.saw("g", offsets(orders=5, gone=1))
    committed.saw("g", offsets(orders=7))
    committed.saw("h", offsets(orders=30))
    ends = {"orders": 20}
    lag = GroupLag(committed, lambda topic, _: ends.get(topic))
    assert list(lag) == [("g", "orders", 0, 13), ("h", "orders", 0, 0)]
    committed.forget("g")
    assert list(lag) == [("h", "orders", 0, 0)]


def test_only_so_many_partitions_are_known() -> None:
    committed = KnownOffsets(most=2)
    committed.saw("g", offsets(a=1, b=1, c=1))
    assert committed.is_full
    assert [len(partitions) for _, partitions in committed] == [2]
    committed.forget("g")
    committed.saw("h", offsets(c=1))
    assert not committed.is_full
    assert [len(partitions) for _, partitions in committed] == [1]
