"""Events of a topic that clients fill, for metrics. Called in the topic's threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from archiver.observer import Observer


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAppended:
    topic: str
    batches: int
    refused: int
    rows: int
    size_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnWritten:
    """`write_seconds` include uploads."""

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
