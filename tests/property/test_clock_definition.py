"""The clock of `ingest_timestamp` against its definition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from archiver.files.rotation import Rotation, partition_values
from archiver.ingest.kafka_log.ingest_clock import NEAR_MS, IngestClock, is_wild

HALF, AHEAD = 4, 100
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
START, PLAN = 19_700 * DAY, 20_500 * DAY
Log = list[tuple[int, int]]

levels = st.sampled_from([0, 1, 2]).map(lambda level: level * 3 * DAY)
logs = st.lists(st.tuples(st.builds(int.__add__, levels, st.integers(0, 2 * HOUR)), st.integers(1, 70)), max_size=60)
cuts_of = st.lists(st.integers(0, 60), max_size=10)
wild_times = st.one_of(st.just(0), st.just(PLAN), st.integers(0, PLAN))
gaps = st.one_of(
    st.integers(0, MINUTE),
    st.integers(0, 12 * HOUR),
    st.sampled_from([HOUR - 1, HOUR, HOUR + 5, DAY, 40 * DAY]),
)


def by_definition(log: Log) -> list[int]:
    times = [time for time, _ in log]
    answer: list[int] = []
    last_kept: int | None = None
    for centre, time in enumerate(times):
        last, ahead = centre, 0
        while last - centre < HALF and last + 1 < len(log) and ahead + log[last + 1][1] <= AHEAD:
            last += 1
            ahead += log[last][1]

        def near(one: int, other: int, last: int = last) -> bool:
            """A batch that is missing or invisible contradicts nothing."""
            if one < 0 or other > last:
                return True
            return abs(times[one] - times[other]) <= NEAR_MS

        both = near(centre - 1, centre) and near(centre, centre + 1)
        by_before = centre > 0 and near(centre - 1, centre) and near(centre - 2, centre - 1)
        by_after = centre < last and near(centre, centre + 1) and near(centre + 1, centre + 2)
        before, after = times[max(centre - HALF, 0) : centre], times[centre + 1 : last + 1]
        if both or by_before or by_after or not is_wild(time, np.array(before, np.int64), np.array(after, np.int64)):
            answer.append(time)
            last_kept = time
        elif last_kept is not None:
            answer.append(last_kept)
        else:
            around = sorted(before + after)
            answer.append(around[(len(around) - 1) // 2])
    return answer


@given(log=logs, cuts=cuts_of)
def test_values_follow_the_definition(log: Log, cuts: list[int]) -> None:
    clock = IngestClock(half_window=HALF, max_ahead_bytes=AHEAD)
    edges = [0, *sorted(min(cut, len(log)) for cut in cuts), len(log)]
    decided: list[int] = []
    for start, end in pairwise(edges):
        part = np.array(log[start:end], np.int64).reshape(-1, 2)
        decided += clock.push(part[:, 0], part[:, 1]).tolist()
        ahead = sum(size for _, size in log[len(decided) + 1 : end])
        assert clock.undecided == end - len(decided)
        assert clock.undecided <= HALF
        assert ahead <= AHEAD
    decided += clock.finish().tolist()
    assert decided == by_definition(log)
    assert clock.undecided == 0


def archived(times: list[int]) -> list[list[int]]:
    clock = IngestClock()
    values = np.array(times, np.int64)
    sizes = np.ones(len(values), np.int64)
    decided = np.concatenate([clock.push(values[:7], sizes[:7]), clock.push(values[7:], sizes[7:]), clock.finish()])
    files: list[list[int]] = []
    for run in Rotation(partition_by="day").runs(decided):
        if run.new_partition or not files:
            files.append([])
        files[-1] += run.times.tolist()
    for file in files:
        assert file == sorted(file)
        assert len(set(partition_values(np.array(file, np.int64), "day").tolist())) == 1
    return files


@given(
    steps=st.lists(st.one_of(gaps, gaps.map(int.__neg__)), max_size=16),
    wild=st.dictionaries(st.integers(0, 16), wild_times),
)
def test_confirmed_batches_are_ten_minutes_off_at_most(steps: list[int], wild: dict[int, int]) -> None:
    times = [START]
    for step in steps:
        times.append(min(max(times[-1] + step, 0), PLAN))
    times = [wild.get(index, time) for index, time in enumerate(times)]
    values = [value for file in archived(times) for value in file]
    for index, (time, value) in enumerate(zip(times, values, strict=True)):
        neighbours = times[max(index - 1, 0) : index] + times[index + 1 : index + 2]
        if all(abs(time - neighbour) <= HOUR for neighbour in neighbours):
            assert abs(value - time) <= 10 * MINUTE


@given(
    steps=st.lists(gaps, min_size=8, max_size=120),
    wild=st.dictionaries(st.integers(0, 40), wild_times, max_size=12),
)
def test_wild_minority_moves_no_other_batch(steps: list[int], wild: dict[int, int]) -> None:
    times = np.minimum(START + np.cumsum([0, *steps]), PLAN).tolist()
    chosen = {3 * index + 1: time for index, time in wild.items() if 3 * index + 2 < len(times)}
    files = archived([chosen.get(index, time) for index, time in enumerate(times)])
    values = [value for file in files for value in file]
    for index, (time, value) in enumerate(zip(times, values, strict=True)):
        if index not in chosen:
            assert abs(value - time) <= 10 * MINUTE


@given(gap=st.integers(1, 3 * DAY), count=st.integers(1, 300))
def test_backfill_days_are_right_at_both_ends(gap: int, count: int) -> None:
    times = np.minimum(START + gap * np.arange(count), PLAN).tolist()
    days = [value // DAY for file in archived(times) for value in file]
    assert days == [time // DAY for time in times]


def test_isolated_wild_clocks_get_the_time_of_their_neighbours() -> None:
    dense = (START + np.arange(400) * MINUTE).tolist()
    slow = (START + np.arange(100) * 2 * HOUR).tolist()
    for times in (dense, slow):
        for wild in (0, PLAN, START + 300 * DAY):
            seen = list(times)
            seen[40] = wild
            files = archived(seen)
            assert [value for file in files for value in file] == [*times[:40], times[39], *times[41:]]
