"""Which rows a table has to hold, which of them are missing, and which are accepted to be gone (docs/operations.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRange:
    """A committed range with a file: `rows` of it have to be in the table; `file_rows` are in the file."""

    id: str
    partition: int
    start_offset: int
    end_offset: int
    path: str
    rows: int
    file_rows: int
    digest: str | None

    @property
    def is_intact(self) -> bool:
        """Whether the file has just the rows that have to be there: none of them was erased or lost before."""
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
    """Rows of a range that stay gone: `erased` by others on purpose, or `lost`. The `left` ones have to be there."""

    range_id: str
    left: int
    erased: int = 0
    lost: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneRows:
    """How many archived rows a topic's table doesn't have any more, as was accepted."""

    erased: int = 0
    lost: int = 0
