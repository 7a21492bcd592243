"""The fence: every offset has one owner."""

from __future__ import annotations

from dataclasses import replace

import pytest

from catalog.model import PartitionOffset, TranslatedRange
from catalog.ranges.fence import Fenced, fence
from tests.support.catalog.memory import span


def in_epoch(start: int, end: int, epoch: int, *, partition: int = 0) -> TranslatedRange:
    return replace(span(partition, start, end), leader_epoch=epoch)


def ended(offset: int, epoch: int) -> dict[int, PartitionOffset]:
    return {0: PartitionOffset(next_offset=offset, leader_epoch=epoch)}


def spans(done: Fenced) -> list[tuple[int, int, int]]:
    return [(range_.partition, range_.start_offset, range_.end_offset) for range_ in done.accepted]


def test_ranges_continue_their_partitions_in_any_order() -> None:
    ranges = [span(0, 20, 30), span(1, 7, 9), span(0, 10, 20), span(0, 40, 50)]
    done = fence(ranges, ended(10, 3))
    assert spans(done) == [(0, 10, 20), (0, 20, 30), (1, 7, 9)]
    assert done.rejected == {ranges[3].id: "starts at 40, its partition ends at 30"}


def test_one_of_two_ranges_with_the_same_start_is_taken() -> None:
    first, second, after = span(0, 0, 10), span(0, 0, 10), span(0, 10, 20)
    done = fence([after, second, first], {})
    assert done.accepted == (first, after)
    assert list(done.rejected) == [second.id]


@pytest.mark.parametrize("epoch", [4, 6], ids=["read before an election", "read after it"])
def test_range_continues_another_only_in_the_same_epoch(epoch: int) -> None:
    """Another archiver has [0, 10) in epoch 5. A reader in another epoch may have read another log."""
    mine = [in_epoch(0, 10, epoch), in_epoch(10, 20, 6), in_epoch(20, 30, 6)]
    assert spans(fence(mine, ended(10, 5))) == []
    assert spans(fence([in_epoch(0, 10, 5), *mine[1:]], ended(10, 5))) == [(0, 10, 20), (0, 20, 30)]


def test_a_range_alone_is_judged_by_its_start() -> None:
    """Its stager has looked up the epoch at the leader."""
    assert spans(fence([in_epoch(10, 20, 6)], ended(10, 5))) == [(0, 10, 20)]
    assert spans(fence([in_epoch(0, 5, 2), in_epoch(10, 20, 6)], ended(10, 5))) == [(0, 10, 20)]
