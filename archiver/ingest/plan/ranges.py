"""What to archive next, as a pure decision over what table, registry and brokers say of a topic's partitions.

A partition goes on where the table, or if further the staged files, end. A log that contradicts that (truncated,
diverged, deleted before it was archived) is a DataLoss of that partition alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from archiver.errors import DataLoss
from archiver.kafka import losses
from catalog.model import PartitionOffset, TranslatedRange, new_id
from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPartition:
    """What is known of a partition when a wave is planned.

    `known` is how far it is archived or staged, None where it never was. `log_start` and `last_stable` are the
    broker's. `start` is where a partition begins that never was archived, as was decided once. `missing` names files
    with what comes next that were staged and are gone from the object store.
    `epoch_end` is from where on the log isn't the one that was archived, if that is before `known.next_offset`; in
    what they differ, `differs` says. `last_epoch` is the epoch in which the leader has what lies right before that.
    """

    partition: int
    log_start: int
    last_stable: int
    known: PartitionOffset | None = None
    epoch_end: int | None = None
    differs: str | None = None
    last_epoch: int = -1
    start: int | None = None
    missing: tuple[str, ...] = ()

    @property
    def next_offset(self) -> int:
        """The offset to archive next; the log may begin after it."""
        if self.known is not None:
            return self.known.next_offset
        return self.log_start if self.start is None else self.start

    @property
    def gap(self) -> tuple[int, int] | None:
        """The offsets, half open, that were to be archived next, and that the log no longer has."""
        return (self.next_offset, self.log_start) if self.next_offset < self.log_start else None

    @property
    def lag(self) -> int:
        """How many offsets wait to be archived."""
        return max(0, self.last_stable - max(self.next_offset, self.log_start))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRange:
    """Offsets of one partition for one task; `leader_epoch` is the last one seen before them (-1: none).

    `last_epoch` is the one in which the leader has what lies right before them, -1 where that isn't known.
    `owns_head` says that no range ends where this one starts: its task keeps the records from `start_offset` on of a
    batch that straddles it, as a log start inside a batch does.
    """

    partition: int
    start_offset: int
    end_offset: int
    leader_epoch: int
    owns_head: bool
    last_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """A wave of one topic: the ranges to archive, and the partitions that can't go on, each with its reason.

    `lost` are accepted gaps: offsets, half open, that a log no longer has and the archive never will.
    """

    ranges: tuple[PlannedRange, ...]
    failed: Mapping[int, ContextError]
    lost: Mapping[int, tuple[int, int]]


def plan_topic(topic: str, partitions: Iterable[SeenPartition], *, accept_gaps: bool = False) -> TopicPlan:
    """The wave of a topic: one range for each partition that has anything new.

    With `accept_gaps` a log that begins after what was to come next is gone on with where it begins.
    """
    ranges: list[PlannedRange] = []
    failed: dict[int, ContextError] = {}
    lost: dict[int, tuple[int, int]] = {}
    for seen in partitions:
        try:
            planned = plan_partition(topic, seen, accept_gap=accept_gaps)
        except DataLoss as error:
            failed[seen.partition] = error
            continue
        if seen.gap is not None:
            lost[seen.partition] = seen.gap
        if planned is not None:
            ranges.append(planned)
    return TopicPlan(ranges=tuple(ranges), failed=failed, lost=lost)


def plan_partition(topic: str, seen: SeenPartition, *, accept_gap: bool = False) -> PlannedRange | None:
    """The range a partition has to archive, None where there is nothing new. Raises DataLoss.

    With `accept_gap` it begins where the log does, though offsets before that were lost.
    """
    check_continuity(topic, seen, accept_gap=accept_gap)
    start = max(seen.next_offset, seen.log_start)
    if start >= seen.last_stable:
        return None
    return PlannedRange(
        partition=seen.partition,
        start_offset=start,
        end_offset=seen.last_stable,
        leader_epoch=-1 if seen.known is None else seen.known.leader_epoch,
        owns_head=True,
        last_epoch=seen.last_epoch if seen.gap is None else -1,
    )


def check_continuity(topic: str, seen: SeenPartition, *, accept_gap: bool = False) -> None:
    """Raise DataLoss unless the log still holds what is to come next, and still is the log that was archived.

    With `accept_gap` it may begin after that.
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
    """How far each partition has come, in the table or staged for it."""
    return {
        partition: max(
            (place[partition] for place in (table, staged) if partition in place), key=lambda end: end.next_offset
        )
        for partition in {*table, *staged}
    }


def lost_ranges(
    topic: str,
    lost: Mapping[int, tuple[int, int]],
    *,
    known: Mapping[int, PartitionOffset],
    schema_version: int,
) -> tuple[TranslatedRange, ...]:
    """One range for each partition's lost offsets (half open); `known` is where the partitions stood before."""
    return tuple(
        TranslatedRange(
            id=new_id(),
            topic=topic,
            partition=partition,
            start_offset=start,
            end_offset=end,
            schema_version=schema_version,
            leader_epoch=known[partition].leader_epoch if partition in known else -1,
            files=(),
            created_ms=time.time_ns() // 1_000_000,
            lost=True,
        )
        for partition, (start, end) in sorted(lost.items())
    )
