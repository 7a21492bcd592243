"""The account's size, which gaps don't enlarge."""

from __future__ import annotations

from dataclasses import replace

from catalog.account import acts
from catalog.account.chains import IntervalChains
from catalog.account.comparison import compare
from catalog.account.interval import Interval
from catalog.digests import digest_text
from catalog.offset_range import OffsetRange
from catalog.ranges.rewrite import RecordSpan
from catalog.ranges.stored_ranges import StoredRange
from tests.support.catalog.memory import span

COMMITS = 50


def commit(account: IntervalChains, start: int, length: int, rows: int) -> StoredRange:
    """Commit `rows` records among `length` offsets; the rest are markers, aborted or compacted."""
    stored = span(0, start, start + length, with_file=rows > 0)
    if rows:
        (info,) = stored.files
        stored = replace(stored, files=(replace(info, rows=rows, digest=digest_text(rows)),))
    stored = StoredRange.of(stored, commit_id=f"C{start}")
    fresh = (Interval.of(stored),)
    around = OffsetRange(0, max(0, start - 1), start + length - 1)
    account.act((around,), lambda intervals: acts.summed_up(acts.recorded(intervals, fresh), {}))
    return stored


def test_a_compacted_topic_has_an_interval_for_each_commit() -> None:
    account = IntervalChains()
    ranges = [commit(account, number * 20_000, 20_000, 7) for number in range(COMMITS)]
    assert len(account.intervals) == COMMITS
    assert compare(account.intervals, ranges) == ()
    merged = RecordSpan(
        partition=0, start_offset=0, end_offset=COMMITS * 20_000, rows=7 * COMMITS, digest=digest_text(7 * COMMITS)
    )
    spans = (acts.SpanRecords.of(OffsetRange(0, 0, COMMITS * 20_000 - 1), (merged,)),)
    account.act((spans[0].offsets,), lambda intervals: acts.rewritten(intervals, spans, "compacted"))
    (stored,) = account.intervals
    assert (stored.expected, stored.digest) == (7 * COMMITS, digest_text(7 * COMMITS))


def test_a_million_transactions_have_an_interval_for_each_commit() -> None:
    account = IntervalChains()
    for number in range(COMMITS):
        commit(account, number * 40_000, 40_000, 20_000)
    assert (len(account.intervals), sum(stored.expected for stored in account.intervals)) == (COMMITS, 1_000_000)


def test_offsets_without_records_are_one_interval() -> None:
    account = IntervalChains()
    commit(account, 0, 10, 5)
    for number in range(1, COMMITS):
        commit(account, number * 10, 10, 0)
    assert [stored.offsets for stored in account.intervals] == [
        OffsetRange(0, 0, 9),
        OffsetRange(0, 10, COMMITS * 10 - 1),
    ]
