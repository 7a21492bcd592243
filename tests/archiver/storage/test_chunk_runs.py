"""Column chunks are read together where they lie near each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from archiver.storage.parquet.chunk_runs import HOLE_BYTES, runs

MOST = 4 * HOLE_BYTES

starts = st.integers(0, 40 * HOLE_BYTES)
sizes = st.integers(0, 6 * HOLE_BYTES)
spans = st.lists(st.tuples(starts, sizes).map(lambda each: (each[0], each[0] + each[1])), max_size=40)


def spans_of_runs(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(run.start, run.end) for run in runs(found, lambda each: each, most=MOST)]


@given(spans)
def test_each_chunk_is_in_one_run_that_holds_it(found: list[tuple[int, int]]) -> None:
    grouped = list(runs(found, lambda each: each, most=MOST))
    assert sorted(chunk for run in grouped for chunk in run.chunks) == sorted(found)
    for run in grouped:
        assert run.start == min(start for start, _ in run.chunks)
        assert run.end == max(end for _, end in run.chunks)
        assert len(run.chunks) == 1 or run.end - run.start <= MOST
        assert all(
            later[0] - max(end for _, end in run.chunks[:at]) <= HOLE_BYTES for at, later in enumerate(run.chunks) if at
        )
    assert [run.start for run in grouped] == sorted(run.start for run in grouped)


def test_neighbours_are_read_together() -> None:
    assert spans_of_runs([(30, 40), (4, 20), (20, 30)]) == [(4, 40)]


def test_a_hole_that_may_lie_between_them_is_read() -> None:
    assert spans_of_runs([(0, 10), (10 + HOLE_BYTES, 20 + HOLE_BYTES)]) == [(0, 20 + HOLE_BYTES)]


def test_a_larger_hole_is_not() -> None:
    assert spans_of_runs([(0, 10), (11 + HOLE_BYTES, 20 + HOLE_BYTES)]) == [(0, 10), (11 + HOLE_BYTES, 20 + HOLE_BYTES)]


def test_a_run_ends_before_it_is_too_large() -> None:
    half = MOST // 2
    assert spans_of_runs([(0, half), (half, MOST), (MOST, MOST + 1)]) == [(0, MOST), (MOST, MOST + 1)]


def test_a_larger_chunk_is_alone() -> None:
    assert spans_of_runs([(0, 1), (1, MOST + 2), (MOST + 2, MOST + 3)]) == [(0, 1), (1, MOST + 2), (MOST + 2, MOST + 3)]


def test_chunks_that_overlap_are_read_once() -> None:
    assert spans_of_runs([(0, 100), (10, 20), (15, 120)]) == [(0, 120)]


def test_no_chunks_are_no_runs() -> None:
    assert spans_of_runs([]) == []
