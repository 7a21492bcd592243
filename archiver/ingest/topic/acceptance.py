"""The losses that a run accepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from archiver.errors import CorruptBatch, DataLoss, LeaderSilent
from schema_mapping.errors import ContextError

UNREADABLE: Final[tuple[type[ContextError], ...]] = (CorruptBatch, LeaderSilent)
"""The errors of offsets that a leader has and can't give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedLosses:
    """`gaps` were lost by the log, `unreadable` can't be given by a leader.

    `raw` permits archiving without a schema after one existed.
    """

    gaps: bool = False
    unreadable: bool = False
    raw: bool = False

    @property
    def errors(self) -> tuple[type[ContextError], ...]:
        """After these a partition is planned again, to record the loss."""
        return (DataLoss,) * self.gaps + UNREADABLE * self.unreadable


NOTHING_ACCEPTED: Final = AcceptedLosses()
