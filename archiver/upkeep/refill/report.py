"""The report of a refill, by hole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from catalog.ranges.holes import Hole


class Fate(StrEnum):
    FROM_FILE = "from_file"
    """They come from their file, which still exists."""
    FROM_KAFKA = "from_kafka"
    """They come from Kafka, archived again."""
    ERASED = "erased"
    """Noted as erased by others on purpose (`--accept-removed`)."""
    LOST = "lost"
    """Noted as lost: they can't be brought back (`--accept-lost`)."""
    LEFT = "left"
    """Still missing. The reason says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MendedHole:
    hole: Hole
    fate: Fate
    rows: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefillReport:
    """`was_back` if the table had been rolled back. Without `commit_id` nothing changed."""

    topic: str
    table: str
    dry_run: bool
    was_back: bool = False
    mended: tuple[MendedHole, ...] = ()
    commit_id: str | None = None

    def of(self, *fates: Fate) -> tuple[MendedHole, ...]:
        return tuple(hole for hole in self.mended if hole.fate in fates)

    def rows(self, *fates: Fate) -> int:
        return rows_of(self.of(*fates))

    @property
    def succeeded(self) -> bool:
        return not self.of(Fate.LEFT)


def rows_of(mended: Iterable[MendedHole]) -> int:
    return sum(hole.rows for hole in mended)
