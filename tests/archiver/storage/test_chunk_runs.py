"""Adjacent column chunks are read together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from archiver.storage.parquet.chunk_runs import FEW, FILLING, HOLE_BYTES, few_runs, runs

MOST = 4 * HOLE_BYTES

starts = st.integers(0, 40 * HOLE_BYTES)
sizes = st.integers(0, 6 * HOLE_BYTES)
spans = st.lists(st.tuples(starts, sizes).map(lambda pair: (pair[0], pair[0] + pair[1])), max_size=40)


def spans_of_runs(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(run.start, run.end) for run in runs(found, lambda pair: pair, most=MOST)]


@given(spans)
def test_each_chunk_is_in_one_run_that_holds_it(found: list[tuple[int, int]]) -> None:
    grouped = list(runs(found, lambda pair: pair, most=MOST))
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


@given(spans)
def test_few_runs_hold_each_chunk_and_read_little_between(chunks: list[tuple[int, int]]) -> None:
    usual = list(runs(chunks, lambda chunk: chunk, most=MOST))
    grouped = list(few_runs(chunks, lambda chunk: chunk, most=MOST))
    assert sorted(chunk for run in grouped for chunk in run.chunks) == sorted(chunks)
    for run in grouped:
        assert run.start == min(start for start, _ in run.chunks)
        assert run.end == max(end for _, end in run.chunks)
    filled = [run.end - run.start for run in grouped], [run.end - run.start for run in usual]
    assert len(grouped) <= len(usual)
    assert sum(filled[0]) <= sum(filled[1]) + FILLING
    if len(grouped) < len(usual):
        assert len(grouped) >= FEW


def test_pages_that_lie_near_take_few_requests() -> None:
    pages = [(at * (HOLE_BYTES + 100), at * (HOLE_BYTES + 100) + 50) for at in range(10)]
    assert len(list(runs(pages, lambda page: page, most=MOST))) == 10
    assert len(list(few_runs(pages, lambda page: page, most=MOST))) == FEW
    far = [(at * FILLING, at * FILLING + 50) for at in range(10)]
    assert len(list(few_runs(far, lambda page: page, most=MOST))) in (9, 10)
