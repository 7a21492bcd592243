from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.ingest.plan.backlog import Backlog, cut, whole
from archiver.ingest.plan.ranges import EpochsBefore, PlannedRange


def backlog(*spans: tuple[int, int], density: float = 10.0) -> Backlog:
    return Backlog(partition=3, spans=spans, bytes_per_offset=density, epochs=EpochsBefore(archived=7))


def ends(ranges: tuple[PlannedRange, ...]) -> list[tuple[int, int]]:
    return [(range_.start_offset, range_.end_offset) for range_ in ranges]


def test_pieces_that_reach_the_end_are_of_one_length() -> None:
    assert ends(cut(backlog((0, 100)), pieces=8, piece_bytes=300)) == [(0, 25), (25, 50), (50, 75), (75, 100)]


def test_what_lies_behind_the_last_piece_is_left() -> None:
    assert ends(cut(backlog((0, 1_000)), pieces=2, piece_bytes=300)) == [(0, 30), (30, 60)]


def test_gaps_come_first() -> None:
    assert ends(cut(backlog((5, 10), (50, 60), (90, 500)), pieces=3, piece_bytes=1_000)) == [
        (5, 10),
        (50, 60),
        (90, 190),
    ]


def test_only_the_head_keeps_a_batch_that_straddles_its_start() -> None:
    ranges = cut(backlog((5, 100)), pieces=4, piece_bytes=100)
    assert [range_.owns_head for range_ in ranges] == [True, False, False, False]
    assert {(range_.partition, range_.epochs) for range_ in ranges} == {(3, EpochsBefore(archived=7))}
    assert [piece.owns_head for piece in whole(backlog((5, 7), (9, 11)))] == [True, False]


@pytest.mark.parametrize("density", [0.0, 0.001, 1e12])
def test_a_wild_estimate_gives_ranges_all_the_same(density: float) -> None:
    ranges = cut(backlog((0, 1_000), density=density), pieces=5, piece_bytes=1 << 29)
    assert 1 <= len(ranges) <= 5
    assert ranges[0].start_offset == 0


@given(
    edges=st.lists(st.integers(0, 10_000), min_size=2, max_size=8, unique=True).map(sorted),
    density=st.floats(0, 1e6),
    pieces=st.integers(1, 40),
    piece_bytes=st.integers(1, 1 << 32),
)
def test_pieces_follow_each_other_and_stay_inside(
    edges: list[int], density: float, pieces: int, piece_bytes: int
) -> None:
    spans = tuple(zip(edges[::2], edges[1::2], strict=False))
    ranges = cut(backlog(*spans, density=density), pieces=pieces, piece_bytes=piece_bytes)
    assert 1 <= len(ranges) <= pieces
    covered = [offset for range_ in ranges for offset in range(range_.start_offset, range_.end_offset)]
    expected = [offset for start, end in spans for offset in range(start, end)]
    assert covered == expected[: len(covered)]
    for before, after in pairwise(ranges):
        assert before.end_offset <= after.start_offset
