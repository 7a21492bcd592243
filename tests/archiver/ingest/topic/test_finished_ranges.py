from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from archiver.ingest.topic.finished_ranges import FinishedRanges
from archiver.topics.continuity import same_log
from catalog.model import PartitionOffset, TranslatedRange
from tests.support.catalog.memory import span
from tests.support.kafka.histories import History


def bounds(ranges: tuple[object, ...]) -> list[tuple[int, int]]:
    return [(range_.start_offset, range_.end_offset) for range_ in ranges]  # type: ignore[attr-defined]


def always(place: PartitionOffset, later: int) -> bool:
    del place, later
    return True


def in_epoch(start: int, end: int, epoch: int) -> TranslatedRange:
    return replace(span(0, start, end), leader_epoch=epoch)


def test_what_is_ahead_waits_for_the_gap() -> None:
    finished = FinishedRanges(0, always)
    assert finished.push([span(0, 20, 30)]) == ()
    assert finished.spans(50) == ((0, 20), (30, 50))
    assert bounds(finished.push([span(0, 0, 10)])) == [(0, 10)]
    assert bounds(finished.push([span(0, 10, 20)])) == [(10, 20), (20, 30)]
    assert finished.next == 30
    assert finished.spans(50) == ((30, 50),)
    assert finished.spans(30) == ()


def test_what_comes_too_late_is_handed_on_to_be_refused() -> None:
    finished = FinishedRanges(0, always)
    finished.push([span(0, 10, 20), span(0, 40, 50)])
    assert bounds(finished.restart(15)) == [(10, 20)]
    assert finished.next == 15
    assert bounds(finished.restart(40)) == [(40, 50)]
    assert finished.next == 50


def test_what_never_found_its_place_is_left_over() -> None:
    finished = FinishedRanges(0, always)
    finished.push([span(0, 10, 20)])
    assert bounds(finished.leftover()) == [(10, 20)]
    assert finished.leftover() == ()
    assert finished.spans(20) == ((0, 20),)


def test_an_epoch_may_rise_where_the_leader_has_both() -> None:
    finished = FinishedRanges(0, always)
    out = finished.push([in_epoch(10, 20, 5), in_epoch(20, 30, 7)]) + finished.push([in_epoch(0, 10, 5)])
    assert [range_.leader_epoch for range_ in out] == [5, 5, 7]
    assert not finished.torn


def test_ranges_across_an_election_do_not_join() -> None:
    finished = FinishedRanges(0, always)
    finished.push([in_epoch(10, 20, 5), in_epoch(20, 30, 7)])
    assert bounds(finished.push([in_epoch(0, 10, 6)])) == [(0, 10)]
    assert finished.torn
    assert finished.spans(30) == ((10, 30),)
    assert finished.leftover() == ()
    assert finished.restart(10, epoch=6) == ()
    assert bounds(finished.push([in_epoch(10, 30, 6)])) == [(10, 30)]


def test_ranges_across_a_truncation_do_not_join() -> None:
    log = History()
    log.append(records=10)
    log.append(records=10)
    first = in_epoch(0, 10, log.epoch)
    before = log.epoch
    log.cut(0)
    log.append(records=20)
    second = in_epoch(10, 20, log.epoch)
    finished = FinishedRanges(0, partial(same_log, log, "orders", 0))
    assert before < log.epoch
    assert bounds(finished.push([second]) + finished.push([first])) == [(0, 10)]
    assert finished.torn


def test_a_log_that_elected_in_order_goes_on() -> None:
    log = History()
    log.append(records=10)
    first = in_epoch(0, 10, log.epoch)
    log.elect()
    log.append(records=10)
    finished = FinishedRanges(0, partial(same_log, log, "orders", 0))
    assert bounds(finished.push([first]) + finished.push([in_epoch(10, 20, log.epoch)])) == [(0, 10), (10, 20)]
    assert not finished.torn


def test_waiting_ranges_are_checked_by_the_archived_epoch() -> None:
    finished = FinishedRanges(0, always)
    finished.push([in_epoch(10, 20, 5)])
    assert finished.restart(10, epoch=6) == ()
    assert finished.spans(20) == ((10, 20),)


def test_what_the_plan_begins_with_needs_no_other_proof() -> None:
    finished = FinishedRanges(0, lambda offset, later: False)
    finished.restart(10, epoch=5)
    assert bounds(finished.push([in_epoch(10, 20, 7)])) == [(10, 20)]


def test_ranges_staged_elsewhere_are_checked_by_the_log() -> None:
    """Even if this archiver knew a later epoch, and a task was planned to begin there."""
    asked: list[tuple[PartitionOffset, int]] = []
    finished = FinishedRanges(0, lambda offset, later: bool(asked.append((offset, later))))
    finished.push([in_epoch(0, 10, 7)])
    assert finished.rejoin(10, epoch=5) == ()
    assert finished.push([in_epoch(10, 20, 7)]) == ()
    assert asked == [(PartitionOffset(next_offset=10, leader_epoch=5), 7)]
    assert finished.torn


def test_a_restart_believes_the_plan_s_epoch_even_if_it_is_lower() -> None:
    """Another archiver staged the ranges before it, of a log truncated since."""
    finished = FinishedRanges(0, lambda offset, later: False)
    finished.push([in_epoch(0, 10, 7), in_epoch(20, 30, 7)])
    assert finished.restart(20, epoch=5) == ()
    assert finished.spans(30) == ((20, 30),)


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=12), seed=st.integers())
def test_any_order_of_tasks_gives_one_order_of_ranges(lengths: list[int], seed: int) -> None:
    edges = [sum(lengths[:index]) for index in range(len(lengths) + 1)]
    ranges = [span(0, start, end) for start, end in pairwise(edges)]
    shuffled = Random(seed).sample(ranges, len(ranges))
    finished = FinishedRanges(0, always)
    out = [range_ for pushed in shuffled for range_ in finished.push([pushed])]
    assert out == ranges
    assert finished.next == edges[-1]
