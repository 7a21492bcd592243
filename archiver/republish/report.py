"""The report of a transfer, and its events."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTransfer:
    """Over all runs, in offsets of the source; `next_offset` is exclusive."""

    partition: int
    start_offset: int
    next_offset: int
    records: int
    """How many records this run has moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReport:
    """Partitions in `moved` have new offsets; in `ahead` the group is further already.

    In `waiting` the transfer hasn't reached the group, in `behind` the group has yet to read records from before
    the transfer. `problem`: why nothing was done.
    """

    group: str
    moved: dict[int, int]
    ahead: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()
    problem: ContextError | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the group's position in the target is at least the source's."""
        return self.problem is None and not self.waiting and not self.behind


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferReport:
    transfer: str
    topic: str
    target: str
    records: int
    size_bytes: int
    transactions: int
    seconds: float
    partitions: tuple[PartitionTransfer, ...]
    groups: tuple[GroupReport, ...] = ()
    offset_map: Path | None = None
    resumed: bool = False

    @property
    def succeeded(self) -> bool:
        return all(group.succeeded for group in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferNoted:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferStarted:
    """`behind` offsets are left. `resumed`: an earlier run copied some."""

    transfer: str
    topic: str
    target: str
    behind: int
    resumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferMoved:
    """A transaction was committed. `behind` offsets are left."""

    records: int
    size_bytes: int
    behind: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferInterrupted:
    """The transfer continues from the last commit after the pause."""

    error: ContextError
    pause_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferFinished:
    report: TransferReport


TransferEvent: TypeAlias = TransferNoted | TransferStarted | TransferMoved | TransferInterrupted | TransferFinished
