"""Files that fill a table's holes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self

import numpy as np

from archiver.commit.table_rows import Offsets, TableRows, within
from archiver.rewrite.target import RewriteTarget
from archiver.storage.segment import RowRange
from archiver.upkeep.refill.copying import CopiedRows, RowCopier
from catalog.digests import add_digests
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import DataFileInfo, TranslatedRange
from catalog.ranges.holes import MOST_SPANS, ExpectedRange, Hole
from catalog.ranges.spans import joined

ERASED: Final = (
    "records of this range were erased, and aren't brought back. If the registry was restored from an older backup, run"
    " `archiver registry rebuild` into an empty database beside it: that one knows them from the journal. Keep this"
    " one: only this one has the offsets of groups and the users of `archiver serve kafka`"
)
"""Why rows stay missing although their file exists."""
UNKNOWN_ROWS: Final = (
    "other rows of this range were accepted as gone before, so it isn't known which of its records are missing, and it"
    " can't be shown that these are what old files or Kafka have of it"
)
MORE_ROWS: Final = (
    "the table lacks more records of the range's old files than are missing: some were removed on purpose, and it isn't"
    " known which. If the registry was restored from an older backup, run `archiver registry rebuild` into an empty"
    " database beside it: that one knows them from the journal"
)
OTHERS_CHANGED: Final = (
    "the table's other rows of this range aren't the archived records: `archiver verify` says what was changed"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending:
    """`replaced_by` ranges replace the whole range. `restored` are the offsets of copies.

    `reason` is why rows stay missing, `doubt` why rows aren't proven to be the archived ones.
    """

    hole: Hole
    rows: int = 0
    files: tuple[DataFileInfo, ...] = ()
    replaced_by: tuple[TranslatedRange, ...] = ()
    reason: str = ""
    doubt: str = ""
    restored: Offsets = field(default_factory=lambda: np.empty(0, np.int64), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mender:
    live: TableRows
    expected: Mapping[str, ExpectedRange]
    copier: RowCopier
    first_offsets: Mapping[int, int] = field(default_factory=dict)
    most_spans: int = MOST_SPANS

    @classmethod
    def of(
        cls,
        table: ArchiveTable,
        expected: Mapping[str, ExpectedRange],
        target: RewriteTarget,
        first_offsets: Mapping[int, int],
    ) -> Self:
        return cls(
            live=TableRows(table, target.formats, target),
            expected=expected,
            copier=RowCopier(target),
            first_offsets=first_offsets,
        )

    def from_files(self, hole: Hole, files: Sequence[DataFileInfo], erased: Sequence[tuple[int, int]] = ()) -> Mending:
        """Fill a hole from files that have or had records of its range, as they are or as copies.

        Copied: files in the table with all rows deleted (no path may come twice), of several ranges, or with `erased`
        or accepted offsets, which are left out.
        """
        range_, whole = self.expected[hole.range_id], self._whole(hole)
        present = self.live.offsets(whole)
        gone = _gone(erased, range_, whole)
        own = [file for file in files if file.path in {recorded.path for recorded in range_.files}]
        is_alone = len(own) == len(range_.files) and sum(file.rows for file in own) == range_.file_rows == range_.rows
        if (
            is_alone
            and whole.start_offset == range_.start_offset
            and not gone
            and not len(present)
            and not any(self.live.has_file(file.path) for file in own)
        ):
            return Mending(hole=hole, rows=range_.file_rows, files=tuple(own))
        without, sources, missing = present, list[tuple[DataFileInfo, Offsets]](), 0
        for file in files:
            fresh = np.setdiff1d(self.copier.offsets(file, whole), without)
            fresh = fresh[~within(fresh, gone)]
            if len(fresh):
                sources.append((file, without))
                without, missing = np.union1d(without, fresh), missing + len(fresh)
        if sources and _is_unprovable(range_):
            return Mending(hole=hole, reason=UNKNOWN_ROWS)
        if missing > hole.rows:
            return Mending(hole=hole, reason=UNKNOWN_ROWS if range_.unplaced else MORE_ROWS)
        copies = [self.copier.copy(file, whole, without=offsets, gone=gone) for file, offsets in sources]
        mending = _made(hole, copies)
        is_proven = self._is_proven(range_, copies)
        if range_.unplaced and not is_proven:
            return Mending(hole=hole, reason=UNKNOWN_ROWS)
        if mending.rows == hole.rows:
            return mending if is_proven or range_.digest is None else replace(mending, doubt=OTHERS_CHANGED)
        return replace(mending, reason=ERASED) if _clipped(erased, whole) else mending

    def found_in_files(self, hole: Hole, files: Sequence[DataFileInfo], erased: Sequence[tuple[int, int]] = ()) -> int:
        range_, whole = self.expected[hole.range_id], self._whole(hole)
        offsets = [self.copier.offsets(file, whole) for file in files]
        if not offsets or _is_unprovable(range_):
            return 0
        fresh = np.setdiff1d(np.concatenate(offsets), self.live.offsets(whole))
        rows = int((~within(fresh, _gone(erased, range_, whole))).sum())
        return rows if rows <= hole.rows else 0

    def absent(self, hole: Hole, restored: Offsets | None = None) -> tuple[tuple[int, int], ...] | None:
        """Return the spans without a row once `restored` offsets are back; None above `most_spans`."""
        range_ = self.expected[hole.range_id]
        whole = RowRange(partition=range_.partition, start_offset=range_.start_offset, end_offset=range_.end_offset)
        present = self.live.offsets(whole)
        if restored is not None:
            present = np.union1d(present, restored)
        edges = np.concatenate(([range_.start_offset - 1], present, [range_.end_offset]))
        gaps = np.flatnonzero(np.diff(edges) > 1)
        if len(gaps) > self.most_spans:
            return None
        return tuple(zip((edges[gaps] + 1).tolist(), edges[gaps + 1].tolist(), strict=True))

    def _is_proven(self, one: ExpectedRange, copies: Sequence[CopiedRows]) -> bool:
        if one.digest is None:
            return False
        (digest,) = self.live.digests((one,))
        return add_digests([digest, *(copied.file.digest for copied in copies if copied.file)]) == one.digest

    def from_log(self, hole: Hole, ranges: Sequence[TranslatedRange], *, takes_part: bool) -> Mending:
        """Fill a hole from records archived again, if the digest proves them.

        Without proof nothing is taken, or everything with `takes_part`.
        """
        expected, whole = self.expected[hole.range_id], self._whole(hole)
        files = tuple(file for range_ in ranges for file in range_.files)
        if not files or _is_unprovable(expected):
            return Mending(hole=hole, reason=UNKNOWN_ROWS if files else "")
        present = self.live.offsets(whole)
        is_whole = sum(file.rows for file in files) == expected.rows and _is_known(
            expected, (file.digest for file in files)
        )
        is_kept = whole.start_offset == expected.start_offset  # else the files have retired rows as well
        gone = _gone((), expected, whole)
        if is_whole and is_kept and not expected.gone and not len(present) and _covers(ranges, expected):
            return Mending(
                hole=hole, rows=expected.rows, files=files, replaced_by=tuple(ranges), doubt=_doubt(expected)
            )
        has_all = sum(file.rows for file in files) >= expected.rows
        copies = self._copies(files, whole, present, gone, is_part=not has_all)
        count = sum(copy.rows for copy in copies)
        if has_all and count < expected.rows:  # it had all only by counting rows of the last batch after the range
            copies = self._copies(files, whole, present, gone, is_part=True)
        if count == expected.rows:
            is_known = _is_known(expected, (copy.digest for copy in copies))
            return _made(hole, copies, doubt=_doubt(expected)) if is_known else _other(hole)
        taken = sum(copy.file.rows for copy in copies if copy.file)
        if len(present) + taken == expected.rows and expected.digest is not None:
            fresh = (copy.file.digest for copy in copies if copy.file)
            return _made(hole, copies) if _is_known(expected, (self.live.digest(whole), *fresh)) else _other(hole)
        if not takes_part or count > expected.rows or taken > hole.rows:
            return Mending(hole=hole, reason=f"its file is gone, and the log has {count} of its {expected.rows} rows")
        return _made(
            hole, copies, doubt=f"not proven: the log has {count} of {expected.rows} rows; a digest proves only all"
        )

    def _copies(
        self,
        files: Sequence[DataFileInfo],
        whole: RowRange,
        there: Offsets,
        gone: Sequence[tuple[int, int]],
        *,
        is_part: bool,
    ) -> tuple[CopiedRows, ...]:
        return tuple(self.copier.copy(file, whole, without=there, gone=gone, is_part=is_part) for file in files)

    def _whole(self, hole: Hole) -> RowRange:
        range_ = self.expected[hole.range_id]
        start = max(range_.start_offset, self.first_offsets.get(range_.partition, 0))  # what lies below is retired
        return RowRange(partition=range_.partition, start_offset=start, end_offset=range_.end_offset)


def _is_unprovable(one: ExpectedRange) -> bool:
    """Whether missing records of a range can't be distinguished from records accepted as gone."""
    return bool(one.unplaced) and one.digest is None


def _gone(erased: Sequence[tuple[int, int]], one: ExpectedRange, whole: RowRange) -> list[tuple[int, int]]:
    return _clipped((*erased, *one.accepted), whole)


def _clipped(spans: Sequence[tuple[int, int]], whole: RowRange) -> list[tuple[int, int]]:
    clipped = ((max(start, whole.start_offset), min(end, whole.end_offset)) for start, end in spans)
    return joined((start, end) for start, end in clipped if start < end)


def _made(hole: Hole, copies: Sequence[CopiedRows], *, doubt: str = "") -> Mending:
    files = tuple(copy.file for copy in copies if copy.file is not None)
    restored = np.concatenate([copy.offsets for copy in copies]) if copies else np.empty(0, np.int64)
    return Mending(hole=hole, rows=sum(file.rows for file in files), files=files, doubt=doubt, restored=restored)


def _other(hole: Hole) -> Mending:
    return Mending(hole=hole, reason="the log has other records there now than were archived")


def _is_known(one: ExpectedRange, digests: Iterable[str | None]) -> bool:
    return one.digest is None or add_digests(digests) == one.digest


def _doubt(one: ExpectedRange) -> str:
    return "" if one.digest is not None else "not proven: no digest of these rows is known, only how many there were"


def _covers(ranges: Sequence[TranslatedRange], one: ExpectedRange) -> bool:
    return ranges[0].start_offset == one.start_offset and ranges[-1].end_offset == one.end_offset
