"""Pure changes of the account, shared by registry and journal (ADR 0072)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from catalog.account.interval import NO_RECORDS, Interval, merged
from catalog.digests import add_digests, subtract_digest
from catalog.offset_range import OffsetRange, clusters, covers_exactly
from catalog.ranges.rewrite import RecordSpan, RewriteGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRecords:
    """A rewrite's records at some offsets.

    `rows` are in new files; `erased` and `retired` ones (`gone_digest`) were removed, `absent` ones not found.
    """

    offsets: OffsetRange
    rows: int
    digest: str | None
    absent: int
    erased: int
    retired: int
    gone_digest: str | None

    @classmethod
    def of(cls, offsets: OffsetRange, spans: Sequence[RecordSpan]) -> Self:
        """A range may be in several files."""
        return cls(
            offsets=offsets,
            rows=sum(span.rows for span in spans),
            digest=add_digests(span.digest for span in spans if span.rows),
            absent=sum(max(0, span.removed) for span in spans),
            erased=sum(span.erased for span in spans),
            retired=sum(span.retired for span in spans),
            gone_digest=add_digests(span.gone_digest for span in spans if span.erased + span.retired),
        )

    @property
    def gone(self) -> int:
        return self.erased + self.retired


def spans_of(group: RewriteGroup) -> tuple[SpanRecords, ...]:
    """Empty if one file replaces one with the same records."""
    by_offsets: dict[OffsetRange, list[RecordSpan]] = {}
    for span in group.all_spans:
        offsets = OffsetRange.half_open(span.partition, span.start_offset, span.end_offset)
        by_offsets.setdefault(offsets, []).append(span)
    return tuple(SpanRecords.of(offsets, spans) for offsets, spans in sorted(by_offsets.items()))


def recorded(intervals: Iterable[Interval], fresh: Iterable[Interval]) -> tuple[Interval, ...]:
    """Refilled offsets keep records and state, with the new borders if each new digest is known."""
    made: list[Interval] = []
    for old, new in clusters(intervals, fresh):
        if not old:
            made += new
        elif not new or not _has_new_borders(old, new):
            made += old
        else:
            made += _with_counts(new, old)
    return tuple(made)


def rewritten(intervals: Iterable[Interval], spans: Iterable[SpanRecords], commit_id: str) -> tuple[Interval, ...]:
    """Rows that the rewrite didn't find stay expected.

    An interval is cut only if nothing of it is gone or missing.
    """
    made: list[Interval] = []
    for old, new in clusters(intervals, spans):
        if not old or not new:
            made += old
        elif len(new) > 1 and _may_cut(old, new):
            cut = [
                Interval(offsets=interval.offsets, expected=interval.rows, digest=interval.digest, commit_id=commit_id)
                for interval in new
            ]
            made += _with_counts(cut, old)
        else:
            made.append(_taken_out(merged(old), new, commit_id))
    return tuple(made)


def accepted(intervals: Iterable[Interval], at: OffsetRange, *, removed: int, lost: int) -> tuple[Interval, ...]:
    made: list[Interval] = []
    for interval in intervals:
        if interval.offsets.overlaps(at):
            less = min(interval.expected, removed), min(max(0, interval.expected - removed), lost)
            made.append(interval.accepted(removed=less[0], lost=less[1]) if any(less) else interval)
            removed, lost = removed - less[0], lost - less[1]
        else:
            made.append(interval)
    return tuple(made)


def retired(intervals: Iterable[Interval], first_offsets: Mapping[int, int]) -> tuple[Interval, ...]:
    return tuple(
        interval.retire() if _is_below(interval, first_offsets) and interval.expected else interval
        for interval in intervals
    )


def summed_up(intervals: Iterable[Interval], first_offsets: Mapping[int, int]) -> tuple[Interval, ...]:
    """Join adjacent intervals that never had records, or are retired."""
    made: list[Interval] = []
    for interval in sorted(intervals, key=lambda interval: interval.offsets):
        before = made[-1] if made else None
        is_next = before is not None and (before.offsets.partition, before.offsets.last + 1) == (
            interval.offsets.partition,
            interval.offsets.first,
        )
        if before is not None and is_next and _may_join(before, interval, first_offsets):
            made[-1] = merged((before, interval))
        else:
            made.append(interval)
    return tuple(made)


def _may_join(before: Interval, interval: Interval, first_offsets: Mapping[int, int]) -> bool:
    if not (before.is_empty and interval.is_empty):
        return False
    return not (before.records or interval.records) or (
        _is_below(before, first_offsets) and _is_below(interval, first_offsets)
    )


def _is_below(interval: Interval, first_offsets: Mapping[int, int]) -> bool:
    return interval.offsets.last < first_offsets.get(interval.offsets.partition, 0)


def _has_new_borders(old: Sequence[Interval], new: Sequence[Interval]) -> bool:
    before, after = merged(old), merged(new)
    return (
        [interval.offsets for interval in old] != [interval.offsets for interval in new]
        and covers_exactly((interval.offsets for interval in old), (interval.offsets for interval in new))
        and before.expected == after.expected
        and after.digest is not None
        and before.digest in (None, after.digest)
    )


def _may_cut(old: Sequence[Interval], new: Sequence[SpanRecords]) -> bool:
    return (
        covers_exactly((interval.offsets for interval in old), (interval.offsets for interval in new))
        and not any(interval.gone or interval.absent for interval in new)
        and sum(interval.rows for interval in new) == sum(interval.expected for interval in old)
    )


def _with_counts(new: Sequence[Interval], old: Sequence[Interval]) -> list[Interval]:
    before, (first, *rest) = merged(old), new
    first = replace(first, erased=before.erased, removed=before.removed, lost=before.lost, retired=before.retired)
    return [replace(interval, is_unknown=before.is_unknown) for interval in (first, *rest)]


def _taken_out(before: Interval, spans: Sequence[SpanRecords], commit_id: str) -> Interval:
    gone = sum(interval.gone for interval in spans)
    rows = sum(interval.rows for interval in spans)
    expected = max(0, before.expected - gone)
    digest = before.digest
    if gone:
        gone_digest = add_digests(interval.gone_digest for interval in spans if interval.gone)
        digest = None if digest is None or gone_digest is None else subtract_digest(digest, gone_digest)
    if not expected:
        digest = NO_RECORDS
    elif digest is None and rows == expected:
        digest = add_digests(interval.digest for interval in spans if interval.rows)
    return replace(
        before,
        expected=expected,
        digest=digest,
        erased=before.erased + sum(interval.erased for interval in spans),
        retired=before.retired + sum(interval.retired for interval in spans),
        commit_id=commit_id,
    )
