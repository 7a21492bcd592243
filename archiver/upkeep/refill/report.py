"""What a refill found and did, by hole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from catalog.ranges.holes import Hole


class Fate(StrEnum):
    """What became of a hole, or would."""

    FROM_FILE = "from_file"
    """Its rows come from the file that held them, which still exists."""
    FROM_KAFKA = "from_kafka"
    """Its rows come from Kafka, archived once more."""
    ERASED = "erased"
    """Noted as erased by others on purpose (`--accept-removed`)."""
    LOST = "lost"
    """Noted as lost: nobody has these rows any more (`--accept-lost`)."""
    LEFT = "left"
    """Still missing; the reason says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """A hole and its fate; `rows` are those that the fate is about.

    `reason` says why they are left, or why nothing proves that those which came back are the records of before.
    """

    hole: Hole
    fate: Fate
    rows: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefillReport:
    """A topic's refill; `was_back` says that its table had been set back. No `commit_id`: nothing was changed."""

    topic: str
    table: str
    dry_run: bool
    was_back: bool = False
    mended: tuple[Mended, ...] = ()
    commit_id: str | None = None

    def of(self, *fates: Fate) -> tuple[Mended, ...]:
        """The holes with these fates."""
        return tuple(each for each in self.mended if each.fate in fates)

    def rows(self, *fates: Fate) -> int:
        """The rows with these fates."""
        return rows_of(self.of(*fates))

    @property
    def succeeded(self) -> bool:
        """Whether nothing is left missing."""
        return not self.of(Fate.LEFT)


def rows_of(mended: Iterable[Mended]) -> int:
    """How many rows they are about."""
    return sum(each.rows for each in mended)
