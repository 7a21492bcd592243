"""Retirement commits leave no gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archiver.upkeep.removal.components import Component
from archiver.upkeep.retire.plan import Batch, Retirement, in_batches, without_failed
from catalog.registry.removable import RemovableRange


def component(*spans: tuple[int, int, int]) -> Component:
    ranges = tuple(
        RemovableRange(
            id=f"{partition}-{start}",
            partition=partition,
            start_offset=start,
            end_offset=end,
            paths=(),
            rows=end - start,
            expected=end - start,
        )
        for partition, start, end in spans
    )
    return Component(ranges=ranges, files=(), recorded=(), has_foreign=False)


def batched(
    going: Sequence[Component],
    first_offsets: Mapping[int, int],
    *,
    edges: Sequence[Component] = (),
    known: Mapping[int, int] | None = None,
) -> list[Batch]:
    batches = list(in_batches(going, edges, first_offsets=first_offsets, known=known or {}, size=1))
    for number, batch in enumerate(batches):
        left = [range_ for later in batches[number + 1 :] for item in later.going for range_ in item.ranges]
        begin = dict(known or {}) | {
            item: offset for item, offset in batch.first_offsets.items() if offset > (known or {}).get(item, 0)
        }
        assert all(range_.end_offset <= begin[range_.partition] for item in batch.going for range_ in item.ranges), (
            "a gap"
        )
        assert all(remaining.start_offset >= begin.get(remaining.partition, 0) for remaining in left), (
            "first offsets pass records"
        )
    return batches


def test_oldest_go_first_and_the_rest_sets_first_offsets() -> None:
    old, young = component((0, 0, 10)), component((0, 10, 20))
    first, second = batched([young, old], {0: 20})
    assert (first.going, first.first_offsets, first.with_edges) == ((old,), {0: 10}, False)
    assert (second.going, second.first_offsets, second.with_edges) == ((young,), {0: 20}, True)


def test_file_of_two_partitions_waits_for_lower_files() -> None:
    both, below, above = component((0, 0, 10), (1, 90, 100)), component((1, 50, 90)), component((0, 10, 20))
    first, second, third = batched([both, below, above], {0: 20, 1: 100})
    assert (first.going, first.first_offsets) == ((), {0: 0, 1: 50})
    assert set(second.going) | set(third.going) == {both, below, above}
    assert third.first_offsets == {0: 20, 1: 100}


def test_what_lies_above_a_file_that_could_not_be_written_stays() -> None:
    below, above, apart = component((0, 0, 10)), component((0, 20, 30), (1, 0, 10)), component((1, 10, 20))
    batches = batched([below, above, apart], {0: 10, 1: 20})
    assert [batch.going for batch in batches if batch.going] == [(below,)]
    assert batches[-1].first_offsets == {0: 10, 1: 0}


def test_what_is_above_an_edge_goes_with_it() -> None:
    edge = component((0, 10, 20), (0, 40, 60))
    below, above = component((0, 0, 10)), component((0, 20, 40))
    first, second = batched([below, above], {0: 50}, edges=[edge])
    assert (first.going, first.first_offsets, first.with_edges) == ((below,), {0: 10}, False)
    assert (second.going, second.first_offsets, second.with_edges) == ((above,), {0: 50}, True)
    (alone,) = batched([], {0: 50}, edges=[edge])
    assert (alone.going, alone.first_offsets, alone.with_edges) == ((), {0: 50}, True)


def test_what_lies_below_the_first_offsets_so_far_goes() -> None:
    again = component((0, 0, 10), (1, 0, 10))
    (only,) = batched([again], {1: 10}, known={0: 30})
    assert only.going == (again,)


def test_failed_edge_keeps_only_what_lies_above_it() -> None:
    below, failed, apart = component((0, 0, 10)), component((0, 10, 30)), component((1, 0, 30))
    planned = Retirement(first_offsets={0: 20, 1: 20}, going=(below,), edges=(failed, apart))
    left = without_failed(planned, [failed], {})
    assert (left.going, left.edges, dict(left.first_offsets)) == ((below,), (apart,), {0: 10, 1: 20})
    (last,) = batched(left.going, left.first_offsets, edges=left.edges)
    assert (last.with_edges, last.first_offsets) == (True, {0: 10, 1: 20})
    assert without_failed(planned, [], {}) == planned


def test_files_for_lowered_first_offsets_are_given_up() -> None:
    failed, both, above = component((0, 10, 30)), component((0, 30, 40), (1, 0, 10)), component((1, 10, 30))
    first_offsets = {0: 40, 1: 20}
    planned = Retirement(first_offsets=first_offsets, going=(both,), edges=(failed, above))
    left = without_failed(planned, [failed], {})
    assert (left.going, left.edges, dict(left.first_offsets)) == ((), (), {0: 10, 1: 0})
    planned = Retirement(first_offsets=first_offsets, edges=(failed, component((0, 5, 10), (1, 10, 30))))
    assert without_failed(planned, [failed], {0: 5}).edges == planned.edges[1:], "all below 10 may go"


def test_a_failed_edge_never_moves_first_offsets_back() -> None:
    going, failed = component((0, 0, 10)), component((0, 5, 30))
    left = without_failed(Retirement(first_offsets={0: 20}, going=(going,), edges=(failed,)), [failed], {0: 10})
    assert left.going == (going,), "partitions begin above it already"
