"""Decide each partition's next offsets.

Continues after table or staged files. A truncated, diverged or expired log gives DataLoss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from archiver.errors import DataLoss
from archiver.topics.seen_partition import SeenPartition, check_continuity
from catalog.offset_range import OffsetRange
from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochsBefore:
    """-1 if none or unknown."""

    archived: int = -1
    at_leader: int = -1


NO_EPOCHS: Final = EpochsBefore()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRange:
    """With `owns_head`, the task keeps the rest of a batch that straddles `start_offset`."""

    partition: int
    start_offset: int
    end_offset: int
    owns_head: bool
    epochs: EpochsBefore = NO_EPOCHS


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    ranges: tuple[PlannedRange, ...]
    failed: Mapping[int, ContextError]
    lost: tuple[OffsetRange, ...]


def plan_topic(
    topic: str,
    partitions: Iterable[SeenPartition],
    *,
    accept_gaps: bool = False,
    unreadable: Mapping[int, OffsetRange] | None = None,
) -> TopicPlan:
    """`accept_gaps` continues at the log start. Partitions continue after `unreadable` offsets."""
    ranges: list[PlannedRange] = []
    failed: dict[int, ContextError] = {}
    lost: list[OffsetRange] = []
    for seen in partitions:
        try:
            planned = plan_partition(topic, seen, accept_gap=accept_gaps)
        except DataLoss as error:
            failed[seen.partition] = error
            continue
        if seen.gap is not None:
            lost.append(seen.gap)
        elif planned is not None and (skipped := (unreadable or {}).get(seen.partition)) is not None:
            lost.append(skipped)
            planned = replace(planned, start_offset=skipped.end, epochs=replace(planned.epochs, at_leader=-1))
        if planned is not None:
            ranges.append(planned)
    return TopicPlan(ranges=tuple(ranges), failed=failed, lost=tuple(lost))


def plan_partition(topic: str, seen: SeenPartition, *, accept_gap: bool = False) -> PlannedRange | None:
    """None if nothing is new. Raises DataLoss, unless `accept_gap` permits the log start."""
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
