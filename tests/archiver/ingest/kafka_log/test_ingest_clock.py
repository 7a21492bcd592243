from __future__ import annotations

import numpy as np

from archiver.ingest.kafka_log.ingest_clock import HALF_WINDOW, IngestClock, batch_times
from archiver.wire.columns import NO_TIME, BatchIndex, Int64Array

DAY = 86_400_000
PLAN = 1_800_000_000_000


def index(append: list[int], median: list[int]) -> BatchIndex:
    count = len(append)
    zeros = np.zeros(count, np.int64)
    return BatchIndex(
        base_offset=np.arange(count),
        last_offset=np.arange(count),
        first_row=np.arange(count),
        rows=np.ones(count, np.int64),
        append_timestamp=np.array(append, np.int64),
        median_timestamp=np.array(median, np.int64),
        bytes=zeros,
    )


def smooth(times: list[int] | Int64Array) -> list[int]:
    clock = IngestClock()
    values = np.array(times, np.int64)
    return [*clock.push(values, np.ones(len(values), np.int64)).tolist(), *clock.finish().tolist()]


def test_append_time_wins_and_no_time_means_the_plans():
    times = batch_times(index([NO_TIME, 7_000, NO_TIME], [5_000, 6_000, NO_TIME]), PLAN)
    assert times.tolist() == [5_000, 7_000, PLAN]


def test_times_stay_between_1970_and_the_plan():
    times = batch_times(index([NO_TIME, NO_TIME, PLAN + 1], [-5, 2**62, NO_TIME]), PLAN)
    assert times.tolist() == [0, PLAN, PLAN]


def test_a_backfill_does_not_lag():
    backfill = np.arange(1_000) * DAY
    assert smooth(backfill)[HALF_WINDOW:-HALF_WINDOW] == backfill[HALF_WINDOW:-HALF_WINDOW].tolist()


def test_wild_clocks_below_half_of_the_window_move_nothing():
    steady = np.full(500, 3 * DAY)
    steady[::3] = PLAN
    assert set(smooth(steady)) == {3 * DAY}


def test_large_batches_are_not_held_for_the_window():
    clock = IngestClock()
    size = np.array([20 << 20], np.int64)
    undecided = []
    for time in range(10):
        clock.push(np.array([time], np.int64), size)
        undecided.append(clock.undecided)
    assert max(undecided) == 2


def test_memory_of_the_past_is_bounded():
    clock = IngestClock()
    for _ in range(100):
        clock.push(np.zeros(1_000, np.int64), np.ones(1_000, np.int64))
    assert len(clock._times) <= 2 * HALF_WINDOW
