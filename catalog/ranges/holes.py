"""Which rows a table must have, which of them are missing, and which are accepted to be gone (docs/operations.md).

A `Hole` is a number of rows of one range that the table lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

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
    """

    id: str
    partition: int
    start_offset: int
    end_offset: int
    files: tuple[ExpectedFile, ...]
    rows: int
    file_rows: int
    digest: str | None

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
class Checked:
    """The holes of a table in one snapshot. A table without holes is complete."""

    snapshot_id: int | None
    holes: tuple[Hole, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"snapshot_id": self.snapshot_id, "holes": [asdict(each) for each in self.holes]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(snapshot_id=value["snapshot_id"], holes=tuple(Hole(**each) for each in value["holes"]))


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
