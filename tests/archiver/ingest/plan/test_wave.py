"""Which ranges make a wave."""

from __future__ import annotations

from collections import Counter

from archiver.ingest.plan.backlog import Backlog
from archiver.ingest.plan.wave import WaveLimits, WavePlanner, small_together, time_shares

MIB = 1 << 20


def backlog(partition: int, offsets: int, *, density: float = 1_000.0) -> Backlog:
    return Backlog(partition=partition, spans=((0, offsets),), bytes_per_offset=density)


def limits(
    *, slots: int = 2, most_tasks: int = 600, task_bytes: int = MIB, tasks_per_partition: int = 16
) -> WaveLimits:
    return WaveLimits(
        slots=slots, most_tasks=most_tasks, task_bytes=task_bytes, tasks_per_partition=tasks_per_partition
    )


def test_one_heavy_partition_fills_the_slots() -> None:
    planned = WavePlanner[str]().plan({"a": [backlog(0, 100_000)]}, limits(slots=4))
    assert len(planned) == 16
    assert [range_.start_offset for _, range_ in planned] == sorted(range_.start_offset for _, range_ in planned)
    assert {range_.end_offset - range_.start_offset for _, range_ in planned} == {1_049}


def test_configuration_bounds_the_pieces() -> None:
    assert len(WavePlanner[str]().plan({"a": [backlog(0, 100_000)]}, limits(slots=8, tasks_per_partition=3))) == 3


def test_enough_heavy_partitions_stay_whole() -> None:
    planned = WavePlanner[str]().plan({"a": [backlog(0, 100_000)], "b": [backlog(7, 100_000)]}, limits(slots=2))
    assert [(topic, range_.partition, range_.end_offset) for topic, range_ in planned] == [
        ("a", 0, 100_000),
        ("b", 7, 100_000),
    ]


def test_small_partitions_stay_whole_beside_a_cut_one() -> None:
    planned = WavePlanner[str]().plan({"a": [backlog(0, 10), backlog(1, 100_000)]}, limits(slots=2))
    assert Counter(range_.partition for _, range_ in planned) == {0: 1, 1: 8}
    assert [range_.partition for _, range_ in planned[:2]] == [0, 1], "heads first"


def test_a_small_backlog_is_one_task() -> None:
    assert len(WavePlanner[str]().plan({"a": [backlog(0, 1_000)]}, limits(slots=16))) == 1


def test_thousands_of_partitions_and_topics_get_turns() -> None:
    planner = WavePlanner[str]()
    backlogs = {
        "wide": [backlog(number, 100) for number in range(3_000)],
        "small": [backlog(number, 100) for number in range(4)],
    }
    waves = [planner.plan(backlogs, limits(most_tasks=600)) for _ in range(6)]
    assert all(len(wave) == 600 for wave in waves)
    assert [sum(topic == "small" for topic, _ in wave) for wave in waves[:5]] == [4, 0, 0, 0, 0]
    served = Counter((topic, range_.partition) for wave in waves[:5] for topic, range_ in wave)
    assert max(served.values()) == 1, "nobody twice before all were served once"
    assert len(served | Counter((topic, range_.partition) for topic, range_ in waves[5])) == 3_004


def test_topics_are_interleaved() -> None:
    backlogs = {
        "a": [backlog(number, 100) for number in range(50)],
        "b": [backlog(number, 100) for number in range(50)],
    }
    planned = WavePlanner[str]().plan(backlogs, limits(most_tasks=10))
    assert Counter(topic for topic, _ in planned) == {"a": 5, "b": 5}


def test_time_is_shared_alike_among_the_like() -> None:
    backlogs = {"a": [backlog(number, 100) for number in range(8)]}
    planned = WavePlanner[str]().plan(backlogs, limits())
    assert time_shares(planned, backlogs, slots=2) == (0.25,) * 8
    alone = {"a": [backlog(0, 100)]}
    assert time_shares(WavePlanner[str]().plan(alone, limits()), alone, slots=2) == (1.0,)


def test_a_heavy_task_gets_the_time_that_small_ones_leave() -> None:
    backlogs = {"small": [backlog(number, 1) for number in range(500)], "heavy": [backlog(0, 10_000_000)]}
    planned = WavePlanner[str]().plan(backlogs, limits(slots=4, tasks_per_partition=1))
    shares = dict(
        zip(
            ((topic, range_.partition) for topic, range_ in planned),
            time_shares(planned, backlogs, slots=4),
            strict=True,
        )
    )
    assert shares["heavy", 0] == 1.0
    assert 0.0 < shares["small", 0] < 0.01
    assert sum(shares.values()) <= 4.0


def test_small_ranges_share_tasks_and_large_ones_have_their_own() -> None:
    backlogs = {
        "large": [backlog(0, 100_000)],
        **{f"small {number}": [backlog(0, 1)] for number in range(200)},
    }
    planned = WavePlanner[str]().plan(backlogs, limits())
    groups = small_together(planned, backlogs, slots=2)
    assert sorted(index for group in groups for index in group) == list(range(len(planned)))
    alone = [index for index, (topic, _) in enumerate(planned) if topic == "large"]
    assert alone
    assert all((index,) in groups for index in alone)
    assert max(map(len, groups)) == 16
    assert groups[0] == (0,), "what was planned first starts first"


def test_slots_stay_busy_where_there_are_few_small_ranges() -> None:
    backlogs = {f"small {number}": [backlog(0, 1)] for number in range(20)}
    planned = WavePlanner[str]().plan(backlogs, limits())
    assert len(small_together(planned, backlogs, slots=2)) == 10
    assert small_together(planned, backlogs, slots=8) == tuple((index,) for index in range(20))
    assert small_together((), {}, slots=2) == ()
