"""Which rows a table has to hold, which of them are missing, and which are accepted to be gone (docs/operations.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from catalog.ranges.held import HeldRange


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedFile:
    """A file with records of a range, `rows` of which have to be in the table."""

    path: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRange:
    """A committed range with records: `rows` of it have to be in the table; its files together had `file_rows`.

    The files may hold records of other ranges, too.
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
        """Whether the files have just the rows that have to be there: none of them was erased or lost before."""
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
        """The offsets as people write them: `[start, end)`."""
        return f"[{self.start_offset}, {self.end_offset})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The holes of a table as of one snapshot; without holes the table was whole."""

    snapshot_id: int | None
    holes: tuple[Hole, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"snapshot_id": self.snapshot_id, "holes": [asdict(each) for each in self.holes]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """What `to_json` gave."""
        return cls(snapshot_id=value["snapshot_id"], holes=tuple(Hole(**each) for each in value["holes"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Rows of a range that stay gone: `erased` by others on purpose, or `lost`. The `left` ones have to be there.

    `paths` are the range's files at that time, and the offsets its own: it is known again by them, whatever its id.
    Acceptances of before they were kept have neither.
    """

    range_id: str
    left: int
    erased: int = 0
    lost: int = 0
    paths: tuple[str, ...] = ()
    partition: int | None = None
    start_offset: int | None = None

    def is_of(self, one: HeldRange) -> bool:
        """Whether it is about this range, and about as many rows as the range has."""
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
        """What `to_json` gave."""
        return cls(**{**value, "paths": tuple(value.get("paths", ()))})


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneRows:
    """How many archived rows a topic's table doesn't have any more, as was accepted or done on purpose."""

    erased: int = 0
    lost: int = 0
    retired: int = 0
