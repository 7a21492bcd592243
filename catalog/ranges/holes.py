"""Which rows a table must have, which of them are missing, and which are accepted to be gone (docs/missing-records.md).

A `Hole` is a number of rows of one range that the table lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from catalog.offset_range import OffsetRange
from catalog.ranges.spans import by_partition, uncovered
from catalog.ranges.stored_ranges import StoredRange


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedFile:
    """A file of a range. The table must have `rows` of its records of that range."""

    path: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRange:
    """A committed range with records. The table must have `rows` of them.

    The files had `file_rows` records of the range when they were written. They may hold records of other ranges too.
    `digest` is the digest of these. `gone` records are gone on purpose, or accepted to be.
    """

    id: str
    partition: int
    start_offset: int
    end_offset: int
    files: tuple[ExpectedFile, ...]
    rows: int
    file_rows: int
    digest: str | None
    gone: int = 0

    @property
    def is_intact(self) -> bool:
        """Whether the table must have every row of the files, so no row is accepted to be gone."""
        return self.rows == self.file_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """Rows of a committed range that the table lacks: how many, and between which offsets (half open)."""

    range_id: str
    partition: int
    start_offset: int
    end_offset: int
    rows: int

    @property
    def span(self) -> str:
        """The offsets as text: `[start, end)`."""
        return f"[{self.start_offset}, {self.end_offset})"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredRange:
    """A committed range whose `rows` rows no longer are the archived records: some were changed, or are there twice."""

    range_id: str
    partition: int
    start_offset: int
    end_offset: int
    rows: int

    @property
    def span(self) -> str:
        """The offsets as text: `[start, end)`."""
        return f"[{self.start_offset}, {self.end_offset})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The holes of a table in one snapshot, and its altered ranges. A table without either is as it was archived.

    `uncompared` are offsets that others may have written rows of, and that weren't compared with
    the digests yet. Some may lie beyond the archived end. `uncompared_rows` is how many archived rows wait for it.
    `unseen_before` is the oldest snapshot that could be looked at, where the one of the check before had expired.
    `sequence` is the sequence number of the snapshot, 0 where it isn't known.
    """

    snapshot_id: int | None
    holes: tuple[Hole, ...] = ()
    altered: tuple[AlteredRange, ...] = ()
    uncompared: tuple[OffsetRange, ...] = ()
    uncompared_rows: int = 0
    unseen_before: int | None = None
    sequence: int = 0

    def without(self, ranges: Iterable[OffsetRange]) -> Self:
        """The same, with these offsets as they were archived."""
        gone = by_partition(ranges)
        return replace(
            self,
            altered=tuple(
                each
                for each in self.altered
                if uncovered([(each.start_offset, each.end_offset)], gone.get(each.partition, ()))
            ),
            uncompared=tuple(
                OffsetRange.half_open(offsets.partition, *left)
                for offsets in self.uncompared
                for left in uncovered([(offsets.first, offsets.end)], gone.get(offsets.partition, ()))
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        found = {"snapshot_id": self.snapshot_id, "holes": [asdict(each) for each in self.holes]}
        more: dict[str, Any] = {
            "altered": [asdict(each) for each in self.altered],
            "uncompared": [[offsets.partition, offsets.first, offsets.end] for offsets in self.uncompared],
            "uncompared_rows": self.uncompared_rows,
            "unseen_before": self.unseen_before,
            "sequence": self.sequence,
        }
        return found | {name: value for name, value in more.items() if value}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(
            snapshot_id=value["snapshot_id"],
            holes=tuple(Hole(**each) for each in value["holes"]),
            altered=tuple(AlteredRange(**each) for each in value.get("altered", ())),
            uncompared=tuple(
                OffsetRange.half_open(partition, start, end)
                for partition, start, end in value.get("uncompared", ())
                if start < end
            ),
            uncompared_rows=value.get("uncompared_rows", 0),
            unseen_before=value.get("unseen_before"),
            sequence=value.get("sequence", 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Rows of a range that stay gone: others `erased` them on purpose, or they are `lost`.

    The table must still have the `left` rows. An acceptance is matched to its range by its partition, its start offset
    and the `paths` of its files at that time, because the id of a range can change. Old acceptances have only the
    `range_id`.
    """

    range_id: str
    left: int
    erased: int = 0
    lost: int = 0
    paths: tuple[str, ...] = ()
    partition: int | None = None
    start_offset: int | None = None

    def is_of(self, one: StoredRange) -> bool:
        """Whether the acceptance belongs to this range, and the range expects as many rows as it did then."""
        place = (self.partition, self.start_offset, frozenset(self.paths))
        is_same = place == (one.partition, one.start_offset, frozenset(one.paths))
        return (
            is_same or (not self.paths and self.range_id == one.id)
        ) and one.expected == self.left + self.erased + self.lost

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self) | {"paths": list(self.paths)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(**{**value, "paths": tuple(value.get("paths", ()))})


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneRows:
    """How many archived rows a topic's table no longer has, by the reason that was accepted."""

    erased: int = 0
    lost: int = 0
    retired: int = 0
