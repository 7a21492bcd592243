"""The ranges to verify: all, ranges of given offsets or times, or a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, Self

import numpy as np

from archiver.archive.mappings import KnownMappings
from archiver.archive.offset_order import offsets_of
from archiver.archive.open_file import TopicStorage
from archiver.archive.plan import TopicSnapshot
from archiver.archive.table_files import TableFiles
from archiver.archive.topic_archive import TopicArchive
from archiver.archive.watermarks import first_offset_since
from archiver.errors import ConfigError
from archiver.records.matching import SelectedRecords
from archiver.records.selection import AtOffset, AtTime, Earliest, Latest, Point, Selection
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.upkeep.verify.evidence import ClaimedRange
from catalog.iceberg.archive_table import ArchiveTable

_FAR: Final = (1 << 63) - 1
_STEPS: Final = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyChoice:
    """A range is verified whole. `sample` is the share of ranges, chosen by `seed`."""

    selection: Selection = field(default_factory=Selection)
    sample: float = 1.0
    seed: int = 0

    @classmethod
    def parse(
        cls,
        *,
        start: str | None = None,
        end: str | None = None,
        partitions: tuple[int, ...] = (),
        sample: str | None = None,
        seed: int = 0,
        where: str | None = None,
    ) -> VerifyChoice:
        """Raise ConfigError for invalid options."""
        return cls(
            selection=Selection.parse(start=start, end=end, partitions=partitions, where=where),
            sample=1.0 if sample is None else _share(sample),
            seed=seed,
        )

    @property
    def is_all(self) -> bool:
        return self.sample >= 1.0 and self.selection == Selection()

    def of(
        self, ranges: Sequence[ClaimedRange], table: ArchiveTable, files: TableFiles, formats: SegmentFormats
    ) -> frozenset[int]:
        """Return indexes of ranges. Raises ConfigError."""
        if self.is_all:
            return frozenset(range(len(ranges)))
        chosen = self.selection.partitions
        existing = {range_.range.partition for range_ in ranges}
        if unknown := set(chosen) - existing - table.offsets.keys():
            raise ConfigError(
                "the archive has no such partition", partitions=sorted(unknown), archived=sorted(existing)
            )
        bounds = {
            partition: tuple(
                _offset(point, partition, table, files, formats) for point in (self.selection.start, self.selection.end)
            )
            for partition in (chosen or existing)
        }
        return frozenset(
            index
            for index, claimed in enumerate(ranges)
            if claimed.range.partition in bounds
            and claimed.range.end_offset > bounds[claimed.range.partition][0]
            and claimed.range.start_offset < bounds[claimed.range.partition][1]
            and self._is_sampled(claimed)
        )

    def _is_sampled(self, each: ClaimedRange) -> bool:
        if self.sample >= 1.0:
            return True
        key = f"{self.seed}/{each.range.partition}/{each.range.start_offset}".encode()
        drawn = int.from_bytes(blake2b(key, digest_size=4).digest())
        return drawn < self.sample * _STEPS


@dataclass(frozen=True, slots=True)
class MatchingRanges:
    """`doubt` says what could not be judged."""

    places: frozenset[int]
    doubt: str | None

    @classmethod
    def find(cls, archive: TopicArchive, selection: Selection, ranges: Sequence[ClaimedRange]) -> Self:
        """Raise ConfigError, StorageError and CatalogError."""
        selected, positions = SelectedRecords.of(archive, selection), set[int]()
        for range_ in selection.resolve(archive):
            places = [number for number, claimed in enumerate(ranges) if claimed.range.partition == range_.partition]
            places.sort(key=lambda number: ranges[number].range.start_offset)
            starts = np.array([ranges[number].range.start_offset for number in places], np.int64)
            for records, _ in selected.read(range_):
                before = np.unique(np.searchsorted(starts, offsets_of(records), side="right")) - 1
                positions.update(places[index] for index in before.tolist() if index >= 0)
        return cls(frozenset(positions), selected.unjudged.text(archive.topic))


def _share(text: str) -> float:
    digits = text.strip()
    try:
        share = float(digits.removesuffix("%")) / (100 if digits.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise ConfigError("--sample is no share of the ranges: write 10% or 0.1", found=text)
    return share


def _offset(point: Point, partition: int, table: ArchiveTable, files: TableFiles, formats: SegmentFormats) -> int:
    match point:
        case AtOffset(offset):
            return offset
        case Earliest():
            return 0
        case Latest():
            return _FAR
        case AtTime(timestamp):
            snapshot = TopicSnapshot(
                snapshot_id=table.snapshot_id,
                files=files,
                next_offsets={number: reached.next_offset for number, reached in table.offsets.items()},
                storage=TopicStorage.of_store(
                    ObjectStore.of_table(table.iceberg), formats, KnownMappings(table.topic.topic)
                ),
            )
            since = first_offset_since(snapshot, partition, timestamp)
            return _FAR if since is None else since
