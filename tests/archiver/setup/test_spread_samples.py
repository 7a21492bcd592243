"""Samples are spread over partitions."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from archiver.setup.spread_samples import SHORTEST, STRETCHES, shares, stretches


def test_partitions_share_evenly() -> None:
    assert shares({0: 10_000, 1: 10_000, 2: 10, 3: 0}, 1_010) == {0: 500, 1: 500, 2: 10}
    assert shares({0: 5, 1: 0}, 100) == {0: 5}
    assert shares({}, 100) == {}
    assert shares({3: 9, 1: 9}, 1) == {1: 1}


@given(st.dictionaries(st.integers(0, 50), st.integers(0, 5_000)), st.integers(1, 10_000))
def test_shares_add_up(sizes: dict[int, int], most: int) -> None:
    shared = shares(sizes, most)
    assert sum(shared.values()) == min(most, sum(sizes.values()))
    assert all(0 < count <= sizes[partition] for partition, count in shared.items())


def test_short_logs_are_taken_whole() -> None:
    assert list(stretches(5, 15, 10)) == [(5, 15, 10)]
    assert list(stretches(5, 15, 300)) == [(5, 15, 300)]


@given(st.integers(0, 10**9), st.integers(1, 10**9), st.integers(1, 100_000))
def test_stretches_cover_the_log(start: int, size: int, most: int) -> None:
    taken = list(stretches(start, start + size, most))
    assert [taken[0][0], taken[-1][1]] == [start, start + size]
    assert all(before[1] == after[0] for before, after in pairwise(taken))
    assert sum(count for _, _, count in taken) == most
    assert 1 <= len(taken) <= STRETCHES
    assert len(taken) == 1 or min(count for _, _, count in taken) >= SHORTEST
