"""Decides which offsets of each partition to archive next, from what table, registry and brokers say of them.

Archiving continues where the table ends, or where the staged files end if that is further. If the log contradicts that
(it was truncated, it diverged, or it was deleted before it was archived), that partition alone has a DataLoss.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from archiver.errors import DataLoss
from archiver.topics.seen_partition import SeenPartition, check_continuity
from catalog.model import PartitionOffset, TranslatedRange, new_id
from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochsBefore:
    """The leader epochs right before a range, for sources that have them. -1: none, or not known.

    `archived` is the last archived epoch, `at_leader` the epoch of the record that the leader has there.
    """

    archived: int = -1
    at_leader: int = -1


NO_EPOCHS: Final = EpochsBefore()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRange:
    """A range of offsets of one partition, for one task.

    Only the source of the records uses `epochs`. With `owns_head`, no other range ends at
    `start_offset`: if `start_offset` lies inside a batch, as a log start may, the task keeps the batch's records from
    there on.
    """

    partition: int
    start_offset: int
    end_offset: int
    owns_head: bool
    epochs: EpochsBefore = NO_EPOCHS


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """One topic's part of a wave: the ranges to archive, and the partitions that can't continue, each with its error.

    `lost` are accepted losses: half-open ranges of offsets that the log no longer has or can't give, so the archive
    never will.
    """

    ranges: tuple[PlannedRange, ...]
    failed: Mapping[int, ContextError]
    lost: Mapping[int, tuple[int, int]]


def plan_topic(
    topic: str,
    partitions: Iterable[SeenPartition],
    *,
    accept_gaps: bool = False,
    unreadable: Mapping[int, tuple[int, int]] | None = None,
) -> TopicPlan:
    """Plan one range for each partition that has new offsets.

    With `accept_gaps`, a partition whose log begins after the next offset continues at the start of the log. A
    partition whose next offsets are `unreadable` continues after them.
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
        elif planned is not None and (span := (unreadable or {}).get(seen.partition)) is not None:
            lost[seen.partition] = span
            planned = replace(planned, start_offset=span[1], epochs=replace(planned.epochs, at_leader=-1))
        if planned is not None:
            ranges.append(planned)
    return TopicPlan(ranges=tuple(ranges), failed=failed, lost=lost)


def plan_partition(topic: str, seen: SeenPartition, *, accept_gap: bool = False) -> PlannedRange | None:
    """The range that a partition has to archive, None if nothing is new. Raises DataLoss.

    With `accept_gap`, the range begins at the start of the log even if offsets before that were lost.
    """
    check_continuity(topic, seen, accept_gap=accept_gap)
    start = max(seen.next_offset, seen.log_start)
    if start >= seen.last_stable:
        return None
    return PlannedRange(
        partition=seen.partition,
        start_offset=start,
        end_offset=seen.last_stable,
        owns_head=True,
        epochs=EpochsBefore(
            archived=-1 if seen.known is None else seen.known.leader_epoch,
            at_leader=seen.last_epoch if seen.gap is None else -1,
        ),
    )


def lost_ranges(
    topic: str,
    lost: Mapping[int, tuple[int, int]],
    *,
    known: Mapping[int, PartitionOffset],
    schema_version: int,
) -> tuple[TranslatedRange, ...]:
    """Accepted gaps as ranges without a file: they move the next offset forward, and record that offsets were lost.

    `lost` has a half-open range of offsets per partition; `known` is how far the partitions were archived before.
    """
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
