"""Files for the holes of a table: those that exist as they are, or copies of the rows that the table doesn't have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from archiver.commit.missing_rows import Offsets, TableRows
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import RowRange
from archiver.upkeep.refill.copying import CopiedRows, RowCopier
from catalog.digests import add_digests
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import DataFileInfo, TopicRow, TranslatedRange
from catalog.ranges.holes import ExpectedRange, Hole
from catalog.registry import Registry
from schema_mapping.row import RowMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending:
    """Files that bring `rows` of a hole back; `replaced_by` are ranges that take the whole range's place.

    `reason` says why rows are left, `doubt` why nothing proves that those which come back are the records of before.
    """

    hole: Hole
    rows: int = 0
    files: tuple[DataFileInfo, ...] = ()
    replaced_by: tuple[TranslatedRange, ...] = ()
    reason: str = ""
    doubt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mender:
    """Makes files for the holes of one snapshot of a table."""

    live: TableRows
    expected: Mapping[str, ExpectedRange]
    copier: RowCopier

    @classmethod
    def of(
        cls,
        table: ArchiveTable,
        expected: Mapping[str, ExpectedRange],
        *,
        registry: Registry,
        spool: Path,
        formats: SegmentFormats,
    ) -> Self:
        """For the holes of this table."""
        copier = RowCopier(
            topic=table.topic.topic,
            objects=ObjectStore.of_table(table.iceberg),
            formats=formats,
            spool=spool,
            mappings=_Known(registry, table.topic),
            table_properties=table.properties,
        )
        return cls(live=TableRows(table, formats, copier.mappings), expected=expected, copier=copier)

    def from_files(self, hole: Hole, files: Sequence[DataFileInfo]) -> Mending:
        """The range's own files that still exist, or copies of those of its rows that the table doesn't have.

        A file that the table has, with all rows of it deleted, is copied too: no path comes twice. So is one that holds
        records of other ranges.
        """
        one, whole = self.expected[hole.range_id], self._whole(hole)
        there = self.live.offsets(whole)
        is_alone = len(files) == len(one.files) and sum(file.rows for file in files) == one.file_rows
        if is_alone and not len(there) and not any(self.live.has_file(file.path) for file in files):
            return Mending(hole=hole, rows=one.file_rows, files=tuple(files))
        return _made(hole, tuple(self.copier.copy(file, whole, without=there) for file in files))

    def from_log(self, hole: Hole, ranges: Sequence[TranslatedRange], *, takes_part: bool) -> Mending:
        """What was archived once more of the range, if it is the records of before, as the range's digest tells.

        The log may have lost some. What the table still has may make up for those, and the digest tells that too. Else
        nothing is taken, or with `takes_part` what there is: a digest of all the rows doesn't prove some of them.
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
        if count == one.rows:
            is_known = _is_known(one, (each.digest for each in copies))
            return _made(hole, copies, doubt=_doubt(one)) if is_known else _other(hole)
        taken = sum(each.file.rows for each in copies if each.file)
        if len(there) + taken == one.rows and one.digest is not None:
            fresh = (each.file.digest for each in copies if each.file)
            return _made(hole, copies) if _is_known(one, (self.live.digest(whole), *fresh)) else _other(hole)
        if not takes_part or count > one.rows or taken > hole.rows:
            return Mending(hole=hole, reason=f"its file is gone, and the log has {count} of its {one.rows} rows")
        if has_all:  # by the files' rows, of which some of the last batch lie after the range
            copies = self._copies(files, whole, there, is_part=True)
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


@dataclass(frozen=True, slots=True)
class _Known:
    """The registry's mappings of one topic, as a MappingSource."""

    registry: Registry
    topic: TopicRow

    def row_mapping(self, version: int) -> RowMapping | None:
        return self.registry.ledger.row_mapping(self.topic, version)


def _made(hole: Hole, copies: Sequence[CopiedRows], *, doubt: str = "") -> Mending:
    there = tuple(each.file for each in copies if each.file is not None)
    return Mending(hole=hole, rows=sum(file.rows for file in there), files=there, doubt=doubt)


def _other(hole: Hole) -> Mending:
    return Mending(hole=hole, reason="the log has other records there now than were archived")


def _is_known(one: ExpectedRange, digests: Iterable[str | None]) -> bool:
    return one.digest is None or add_digests(digests) == one.digest


def _doubt(one: ExpectedRange) -> str:
    """Why all rows of a range aren't proven to be those of before, once their number and any digest agree."""
    return "" if one.digest is not None else "not proven: no digest of these rows is known, only how many there were"


def _covers(ranges: Sequence[TranslatedRange], one: ExpectedRange) -> bool:
    """Whether ranges are the whole range, each row of theirs in it: no batch reaches out of it."""
    return ranges[0].start_offset == one.start_offset and ranges[-1].end_offset == one.end_offset
