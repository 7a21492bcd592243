"""Which losses a run accepts: the person who started it said so, once, for this run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from archiver.errors import CorruptBatch, DataLoss, LeaderSilent
from schema_mapping.errors import ContextError

UNREADABLE: Final[tuple[type[ContextError], ...]] = (CorruptBatch, LeaderSilent)
"""The errors of offsets that a leader has and can't give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedLosses:
    """`gaps` are offsets that a log lost before they were archived, `unreadable` offsets that a leader can't give.

    With `raw`, keys or values that had a schema may be archived without one from now on.
    """

    gaps: bool = False
    unreadable: bool = False
    raw: bool = False

    @property
    def errors(self) -> tuple[type[ContextError], ...]:
        """The errors after which a partition is planned again, to record the loss."""
        return (DataLoss,) * self.gaps + UNREADABLE * self.unreadable


NOTHING_ACCEPTED: Final = AcceptedLosses()
