from __future__ import annotations

import numpy as np
import pytest

from archiver.files.rotation import TOLERANCE_MS, Rotation, partition_folder, partition_values
from catalog.partitioning import PartitionColumn, Partitioning

HOUR = 3_600_000
DAY = 24 * HOUR


def rotation(partition_by: str = "day") -> Rotation:
    return Rotation(partition_by=partition_by)


def test_new_partitions_and_falling_times_end_the_file():
    late = 2 * DAY - TOLERANCE_MS
    times = np.array([DAY, DAY + 5, 2 * DAY, late, late - 1, 3 * DAY])
    runs = list(rotation().runs(times))
    assert [(run.first, run.end, run.partition_value, run.new_partition) for run in runs] == [
        (0, 2, 1, False),
        (2, 4, 2, True),
        (4, 5, 1, True),
        (5, 6, 3, True),
    ]
    assert runs[1].times.tolist() == [2 * DAY, 2 * DAY]


def test_maximum_spans_groups_and_resets_with_a_file():
    decision = rotation()
    assert [run.partition_value for run in decision.runs(np.array([3 * DAY]))] == [3]
    late = list(decision.runs(np.array([3 * DAY - 5])))
    assert [(run.partition_value, run.new_partition, run.times.tolist()) for run in late] == [(3, False, [3 * DAY])]
    decision.end()
    early = list(decision.runs(np.array([DAY])))
    assert [(run.partition_value, run.new_partition) for run in early] == [(1, False)]


def test_file_may_end_between_two_runs_of_a_group():
    decision = rotation()
    seen = []
    for run in decision.runs(np.array([DAY, 2 * DAY, DAY])):
        seen.append((run.first, run.end, run.new_partition))
        decision.end()
    assert seen == [(0, 1, False), (1, 2, False), (2, 3, False)]


def test_times_that_fall_all_the_time_make_few_files():
    times = np.where(np.arange(100_000) % 2, DAY, DAY + HOUR)
    decision = rotation()
    files = sum(run.new_partition for group in np.split(times, 100) for run in decision.runs(group))
    assert files <= 16 + len(times) // 4096 + 1
    assert files > 16


@pytest.mark.parametrize(
    ("partition_by", "values", "folder"),
    [
        ("hour", [0, 491_040], "ingest_hour=2026-01-07-00"),
        ("day", [0, 20_460], "ingest_day=2026-01-07"),
        ("month", [0, 672], "ingest_month=2026-01"),
        ("year", [0, 56], "ingest_year=2026"),
    ],
)
def test_partitions_count_as_iceberg_counts(partition_by: str, values: list[int], folder: str) -> None:
    times = np.array([HOUR - 1, 20_460 * DAY + 5])
    assert partition_values(times, partition_by).tolist() == values
    by_time = Partitioning((PartitionColumn(f"ingest_{partition_by}", partition_by, 13),))
    assert partition_folder("lake", by_time, values[1]) == f"lake/{folder}"
