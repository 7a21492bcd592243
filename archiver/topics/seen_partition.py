"""What is known of one partition now, from table, registry and leader, and whether archiving can continue there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archiver.kafka import losses
from catalog.model import PartitionOffset


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPartition:
    """What is known of a partition when a wave is planned.

    `known` is how far the partition is archived or staged, None if it never was. `log_start` and `last_stable` come
    from the broker. `start` is the start offset that was decided for a partition that never was archived. `missing`
    names staged files that hold the next offsets and are gone from the object store. From `epoch_end` on, the log isn't
    the archived one: it is set only if that offset is before `known.next_offset`, and `differs` describes the
    differences. `proves_epochs` is false if the leader's answers about epochs prove nothing: then only the newest
    archived records were compared. `last_epoch` is the leader epoch of what the leader has right before
    `known.next_offset`.
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
        """The offset to archive next. The log may begin after it."""
        if self.known is not None:
            return self.known.next_offset
        return self.log_start if self.start is None else self.start

    @property
    def gap(self) -> tuple[int, int] | None:
        """The half-open range of offsets that come next but are no longer in the log; None if there is none."""
        return (self.next_offset, self.log_start) if self.next_offset < self.log_start else None

    @property
    def lag(self) -> int:
        """How many offsets wait to be archived."""
        return max(0, self.last_stable - max(self.next_offset, self.log_start))


def check_continuity(topic: str, seen: SeenPartition, *, accept_gap: bool = False) -> None:
    """Raise DataLoss unless the log is still the one that was archived, and still has the next offset.

    With `accept_gap`, the log may begin after the next offset.
    """
    offset, known = seen.next_offset, seen.known
    if seen.gap is not None and not accept_gap:
        raise losses.deleted(topic, seen.partition, offset=offset, log_start=seen.log_start, missing=seen.missing)
    if known is None:
        return
    if seen.epoch_end is not None and seen.epoch_end < offset:
        raise losses.diverged(
            topic,
            seen.partition,
            leader_epoch=known.leader_epoch,
            epoch_end=seen.epoch_end,
            offset=offset,
            differs=seen.differs,
        )
    if seen.last_stable < offset:
        raise losses.too_short(topic, seen.partition, log_end=seen.last_stable, offset=offset)


def furthest(table: Mapping[int, PartitionOffset], staged: Mapping[int, PartitionOffset]) -> dict[int, PartitionOffset]:
    """How far each partition is archived: by the table or by the staged files, whichever is further."""
    return {
        partition: max(
            (place[partition] for place in (table, staged) if partition in place), key=lambda end: end.next_offset
        )
        for partition in {*table, *staged}
    }
