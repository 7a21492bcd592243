"""An interval of the account: expected rows, and gone records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self

from catalog.digests import add_digests, digest_text
from catalog.offset_range import OffsetRange, hull
from catalog.ranges.stored_ranges import StoredRange

NO_RECORDS: Final = digest_text(0)
"""The digest of no records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The records at some offsets, in all files.

    `digest` is of the `expected` rows, None if unknown. Gone are `erased`, `removed` (by other engines), `lost` and
    `retired` ones. `is_gap`: lost by the log. `is_unknown`: only rows show the offsets. Other offsets have no record
    (markers, aborted, compacted).
    """

    offsets: OffsetRange
    expected: int = 0
    digest: str | None = NO_RECORDS
    erased: int = 0
    removed: int = 0
    lost: int = 0
    retired: int = 0
    is_gap: bool = False
    is_unknown: bool = False
    commit_id: str | None = field(default=None, compare=False)

    @classmethod
    def of(cls, interval: StoredRange, *, is_unknown: bool = False) -> Self:
        """Rows removed by other engines count as erased."""
        is_whole = interval.rows == interval.expected and any(file.file is not None for file in interval.files)
        return cls(
            offsets=OffsetRange.half_open(interval.partition, interval.start_offset, interval.end_offset),
            expected=interval.expected,
            digest=NO_RECORDS if not interval.expected else interval.digest if is_whole else None,
            erased=sum(file.erased for file in interval.files),
            lost=sum(file.lost for file in interval.files),
            retired=sum(file.retired for file in interval.files),
            is_gap=interval.lost,
            is_unknown=is_unknown,
            commit_id=interval.files[0].commit_id,
        )

    @property
    def records(self) -> int:
        return self.expected + self.erased + self.removed + self.lost + self.retired

    @property
    def is_intact(self) -> bool:
        return self.expected == self.records

    @property
    def is_empty(self) -> bool:
        return not self.expected and not self.is_gap and not self.is_unknown

    def accepted(self, *, removed: int, lost: int) -> Self:
        expected = max(0, self.expected - removed - lost)
        return replace(
            self,
            expected=expected,
            digest=NO_RECORDS if not expected else None,
            removed=self.removed + removed,
            lost=self.lost + lost,
        )

    def retire(self) -> Self:
        return replace(self, expected=0, digest=NO_RECORDS, retired=self.retired + self.expected)


def accepted_rows(intervals: Iterable[Interval], offsets: OffsetRange) -> int | None:
    touched = [interval for interval in intervals if interval.offsets.overlaps(offsets)]
    return sum(interval.removed + interval.lost for interval in touched) if touched else None


def merged(intervals: Sequence[Interval]) -> Interval:
    """Merge at least one interval of one partition."""
    return Interval(
        offsets=hull(interval.offsets for interval in intervals),
        expected=sum(interval.expected for interval in intervals),
        digest=add_digests(interval.digest for interval in intervals),
        erased=sum(interval.erased for interval in intervals),
        removed=sum(interval.removed for interval in intervals),
        lost=sum(interval.lost for interval in intervals),
        retired=sum(interval.retired for interval in intervals),
        is_gap=any(interval.is_gap for interval in intervals),
        is_unknown=any(interval.is_unknown for interval in intervals),
        commit_id=max((interval.commit_id for interval in intervals if interval.commit_id is not None), default=None),
    )
