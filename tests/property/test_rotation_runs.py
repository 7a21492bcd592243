"""Rotation of files at any times."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from archiver.files.rotation import Rotation, partition_values

times_of = st.lists(st.integers(0, 100 * 86_400_000), min_size=1, max_size=30)


@given(
    groups=st.lists(times_of, min_size=1, max_size=8),
    partition_by=st.sampled_from(["hour", "day", "month", "year"]),
    full=st.lists(st.booleans(), max_size=40),
)
def test_every_batch_is_in_one_file_of_one_partition(
    groups: list[list[int]], partition_by: str, full: list[bool]
) -> None:
    decision = Rotation(partition_by=partition_by)
    files: list[list[int]] = [[]]
    inputs: list[list[int]] = [[]]
    ends = iter(full)
    for times in groups:
        placed = 0
        for run in decision.runs(np.array(times, np.int64)):
            assert run.first == placed
            placed = run.end
            if run.new_partition:
                files.append([])
                inputs.append([])
            files[-1] += run.times.tolist()
            inputs[-1] += times[run.first : run.end]
            if next(ends, False):
                decision.end()
                files.append([])
                inputs.append([])
        assert placed == len(times)
    assert [time for file in inputs for time in file] == [time for times in groups for time in times]
    for given_times, file in zip(inputs, files, strict=True):
        assert file == [max(given_times[: position + 1]) for position in range(len(given_times))]
        assert len(set(partition_values(np.array(file, np.int64), partition_by).tolist())) <= 1
