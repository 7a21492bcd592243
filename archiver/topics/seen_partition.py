"""The state of a partition, and whether archiving can continue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archiver.kafka import losses
from catalog.model import PartitionOffset
from catalog.offset_range import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPartition:
    """`known` is the archived or staged end, None if never archived.

    `missing` staged files of the next offsets are gone. From `epoch_end` (before `known.next_offset`) on, the log
    differs as `differs` says. Without `proves_epochs` only the newest records were compared. `last_epoch` is the
    leader's right before `known.next_offset`.
    """

    partition: int
    log_start: int
    last_stable: int
    known: PartitionOffset | None = None
    epoch_end: int | None = None
    differs: str | None = None
    last_epoch: int = -1
    proves_epochs: bool = True
    start: int | None = None
    missing: tuple[str, ...] = ()

    @property
    def next_offset(self) -> int:
        """The log may begin after it."""
        if self.known is not None:
            return self.known.next_offset
        return self.log_start if self.start is None else self.start

    @property
    def gap(self) -> OffsetRange | None:
        """The next offsets that the log lacks, if any."""
        if self.next_offset >= self.log_start:
            return None
        return OffsetRange.half_open(self.partition, self.next_offset, self.log_start)

    @property
    def lag(self) -> int:
        return max(0, self.last_stable - max(self.next_offset, self.log_start))


def check_continuity(topic: str, seen: SeenPartition, *, accept_gap: bool = False) -> None:
    """Raise DataLoss unless the log is the archived one and has the next offset."""
    offset, position = seen.next_offset, seen.known
    if seen.gap is not None and not accept_gap:
        raise losses.deleted(topic, seen.partition, offset=offset, log_start=seen.log_start, missing=seen.missing)
    if position is None:
        return
    if seen.epoch_end is not None and seen.epoch_end < offset:
        raise losses.diverged(
            topic,
            seen.partition,
            leader_epoch=position.leader_epoch,
            epoch_end=seen.epoch_end,
            offset=offset,
            differs=seen.differs,
        )
    if seen.last_stable < offset:
        raise losses.too_short(topic, seen.partition, log_end=seen.last_stable, offset=offset)


def furthest(table: Mapping[int, PartitionOffset], staged: Mapping[int, PartitionOffset]) -> dict[int, PartitionOffset]:
    return {
        partition: max(
            (source[partition] for source in (table, staged) if partition in source), key=lambda end: end.next_offset
        )
        for partition in {*table, *staged}
    }
