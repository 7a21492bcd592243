"""Make the files that fill the holes of a table: existing files, or copies of the rows that the table lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from archiver.commit.table_rows import Offsets, TableRows
from archiver.rewrite.target import RewriteTarget
from archiver.storage.segment import RowRange
from archiver.upkeep.refill.copying import CopiedRows, RowCopier
from catalog.digests import add_digests
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import DataFileInfo, TranslatedRange
from catalog.ranges.holes import ExpectedRange, Hole

ERASED: Final = (
    "records of this range were erased, and aren't brought back. If the registry was restored from an older backup, run"
    " `archiver registry rebuild` into an empty database beside it: that one knows them from the journal. Keep this"
    " one: only this one has the offsets of groups and the users of `archiver serve kafka`"
)
"""Why rows stay missing although their file exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending:
    """The files that bring back `rows` of a hole.

    `replaced_by` are new ranges that replace the whole range. `reason` says why rows are left missing. `doubt` says why
    it is not proven that the rows that come back are the archived records.
    """

    hole: Hole
    rows: int = 0
    files: tuple[DataFileInfo, ...] = ()
    replaced_by: tuple[TranslatedRange, ...] = ()
    reason: str = ""
    doubt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mender:
    """Makes files for the holes in one snapshot of a table."""

    live: TableRows
    expected: Mapping[str, ExpectedRange]
    copier: RowCopier

    @classmethod
    def of(cls, table: ArchiveTable, expected: Mapping[str, ExpectedRange], target: RewriteTarget) -> Self:
        """Return a mender for this table."""
        return cls(live=TableRows(table, target.formats, target), expected=expected, copier=RowCopier(target))

    def from_files(self, hole: Hole, files: Sequence[DataFileInfo], erased: Sequence[tuple[int, int]] = ()) -> Mending:
        """Fill a hole from the range's files that still exist: as they are, or copies of the missing rows.

        A file that the table has, with all of its rows deleted, is copied too, because no path may come twice. So is a
        file with records of other ranges, and one with `erased` offsets in its range: if the registry is older than the
        erasure, the file that it knows has these records still. They are left out.
        """
        one, whole = self.expected[hole.range_id], self._whole(hole)
        there = self.live.offsets(whole)
        gone = _within(erased, whole)
        is_alone = len(files) == len(one.files) and sum(file.rows for file in files) == one.file_rows
        if is_alone and not len(gone) and not len(there) and not any(self.live.has_file(file.path) for file in files):
            return Mending(hole=hole, rows=one.file_rows, files=tuple(files))
        without = np.union1d(there, gone)
        mending = _made(hole, tuple(self.copier.copy(file, whole, without=without) for file in files))
        return replace(mending, reason=ERASED) if len(gone) and mending.rows < hole.rows else mending

    def from_log(self, hole: Hole, ranges: Sequence[TranslatedRange], *, takes_part: bool) -> Mending:
        """Fill a hole from what was archived again of its range, if the digest shows the same records as before.

        The log may have lost some of them. Rows that the table still has may complete them; the digest shows that too.
        Otherwise nothing is taken or, with `takes_part`, what there is: a digest of all rows can't prove some of them.
        """
        one, whole = self.expected[hole.range_id], self._whole(hole)
        files = tuple(file for each in ranges for file in each.files)
        if not files:
            return Mending(hole=hole)
        there = self.live.offsets(whole)
        is_whole = sum(file.rows for file in files) == one.rows and _is_known(one, (file.digest for file in files))
        if is_whole and not len(there) and _covers(ranges, one):
            return Mending(hole=hole, rows=one.rows, files=files, replaced_by=tuple(ranges), doubt=_doubt(one))
        has_all = sum(file.rows for file in files) >= one.rows
        copies = self._copies(files, whole, there, is_part=not has_all)
        count = sum(each.rows for each in copies)
        if has_all and count < one.rows:  # it had all only by counting rows of the last batch after the range
            copies = self._copies(files, whole, there, is_part=True)
        if count == one.rows:
            is_known = _is_known(one, (each.digest for each in copies))
            return _made(hole, copies, doubt=_doubt(one)) if is_known else _other(hole)
        taken = sum(each.file.rows for each in copies if each.file)
        if len(there) + taken == one.rows and one.digest is not None:
            fresh = (each.file.digest for each in copies if each.file)
            return _made(hole, copies) if _is_known(one, (self.live.digest(whole), *fresh)) else _other(hole)
        if not takes_part or count > one.rows or taken > hole.rows:
            return Mending(hole=hole, reason=f"its file is gone, and the log has {count} of its {one.rows} rows")
        return _made(
            hole, copies, doubt=f"not proven: the log has {count} of {one.rows} rows; a digest proves only all"
        )

    def _copies(
        self, files: Sequence[DataFileInfo], whole: RowRange, there: Offsets, *, is_part: bool
    ) -> tuple[CopiedRows, ...]:
        return tuple(self.copier.copy(file, whole, without=there, is_part=is_part) for file in files)

    def _whole(self, hole: Hole) -> RowRange:
        one = self.expected[hole.range_id]
        return RowRange(partition=one.partition, start_offset=one.start_offset, end_offset=one.end_offset)


def _within(spans: Sequence[tuple[int, int]], whole: RowRange) -> Offsets:
    """The offsets of a range that are in one of the spans, ascending, each once."""
    clipped = [(max(start, whole.start_offset), min(end, whole.end_offset)) for start, end in spans]
    found = [np.arange(start, end, dtype=np.int64) for start, end in clipped if start < end]
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def _made(hole: Hole, copies: Sequence[CopiedRows], *, doubt: str = "") -> Mending:
    there = tuple(each.file for each in copies if each.file is not None)
    return Mending(hole=hole, rows=sum(file.rows for file in there), files=there, doubt=doubt)


def _other(hole: Hole) -> Mending:
    return Mending(hole=hole, reason="the log has other records there now than were archived")


def _is_known(one: ExpectedRange, digests: Iterable[str | None]) -> bool:
    return one.digest is None or add_digests(digests) == one.digest


def _doubt(one: ExpectedRange) -> str:
    """Why it is not proven that all rows of a range are the archived ones, although their number and digest agree."""
    return "" if one.digest is not None else "not proven: no digest of these rows is known, only how many there were"


def _covers(ranges: Sequence[TranslatedRange], one: ExpectedRange) -> bool:
    """Whether the new ranges cover exactly this range, so that no batch extends beyond it."""
    return ranges[0].start_offset == one.start_offset and ranges[-1].end_offset == one.end_offset
