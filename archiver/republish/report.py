"""The report of a transfer, and its events."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTransfer:
    """What a transfer has moved of a partition in all its runs: offsets of the source, `next_offset` not included."""

    partition: int
    start_offset: int
    next_offset: int
    records: int
    """How many records this run has moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReport:
    """A consumer group whose offsets were carried over.

    `moved` has the new offset of each partition, `ahead` the partitions where the group stands further already,
    `waiting` those where it stands at an offset that the transfer hasn't reached, and `behind` those where it has yet
    to read records that the target had before the transfer's. `problem` says why nothing was done.
    """

    group: str
    moved: dict[int, int]
    ahead: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()
    problem: ContextError | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the group stands in the target where it stood in the source, or further."""
        return self.problem is None and not self.waiting and not self.behind


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferReport:
    """What one run of a transfer did."""

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
        """Whether all offsets of groups that were asked for could be carried over."""
        return all(each.succeeded for each in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferNoted:
    """Something that the user should know before the work begins."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferStarted:
    """`behind` offsets of the source are left to move. `resumed`: an earlier run has moved some."""

    transfer: str
    topic: str
    target: str
    behind: int
    resumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferMoved:
    """A transaction was committed. All numbers are of this run, but `behind`, which is what is left."""

    records: int
    size_bytes: int
    behind: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferInterrupted:
    """Something failed that may work in a moment. The transfer goes on from what is committed, after a pause."""

    error: ContextError
    pause_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferFinished:
    """The run is over."""

    report: TransferReport


TransferEvent: TypeAlias = TransferNoted | TransferStarted | TransferMoved | TransferInterrupted | TransferFinished
