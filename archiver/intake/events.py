"""What happens to the rows of a topic that clients fill, for metrics. Threads of the topic call observers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from archiver.observer import Observer


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAppended:
    """Batches that were written and synced together. `refused` of them have an error."""

    topic: str
    batches: int
    refused: int
    rows: int
    size_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnWritten:
    """`write_seconds` are of writing and uploading the files, `seconds` of the whole turn."""

    topic: str
    rows: int
    files: int
    file_bytes: int
    write_seconds: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed:
    topic: str


IntakeEvent: TypeAlias = GroupAppended | TurnWritten | TurnFailed
IntakeObserver: TypeAlias = Observer[IntakeEvent]
