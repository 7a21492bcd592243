"""What to archive next, as a pure decision over what table, registry and brokers say of a topic's partitions.

A partition goes on where the table, or if further the staged files, end. A log that contradicts that (truncated,
diverged, deleted before it was archived) is a DataLoss of that partition alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from archiver.errors import DataLoss
from archiver.ingest import losses
from catalog.model import PartitionOffset
from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """What is known of a partition when a wave is planned.

    `known` is how far it is archived or staged, None where it never was. `log_start` and `last_stable` are the
    broker's. `epoch_end` is where the leader says that `known.leader_epoch` ended, None where it knows no such epoch
    or wasn't asked. `start` is where the configuration lets a partition begin that never was archived. `missing` names
    files with what comes next that were staged and are gone from the object store.
    """

    partition: int
    log_start: int
    last_stable: int
    known: PartitionOffset | None = None
    epoch_end: int | None = None
    start: int | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRange:
    """Offsets of one partition for one task; `leader_epoch` is the last one seen before them (-1: none).

    `owns_head` says that no range ends where this one starts: its task keeps the records from `start_offset` on of a
    batch that straddles it, as a log start inside a batch does.
    """

    partition: int
    start_offset: int
    end_offset: int
    leader_epoch: int
    owns_head: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """A wave of one topic: the ranges to archive, and the partitions that can't go on, each with its reason.

    `lost` are accepted gaps: offsets, half open, that a log no longer has and the archive never will.
    """

    ranges: tuple[PlannedRange, ...]
    failed: Mapping[int, ContextError]
    lost: Mapping[int, tuple[int, int]]


def plan_topic(topic: str, views: Iterable[PartitionView], *, accept_gaps: bool = False) -> TopicPlan:
    """The wave of a topic: one range for each partition that has anything new.

    With `accept_gaps` a log that begins behind what is archived is gone on with where it begins.
    """
    ranges: list[PlannedRange] = []
    failed: dict[int, ContextError] = {}
    lost: dict[int, tuple[int, int]] = {}
    for view in views:
        gap = _gap(view) if accept_gaps else None
        try:
            planned = plan_partition(topic, view, skip_to=gap[1] if gap else None)
        except DataLoss as error:
            failed[view.partition] = error
            continue
        if gap is not None:
            lost[view.partition] = gap
        if planned is not None:
            ranges.append(planned)
    return TopicPlan(ranges=tuple(ranges), failed=failed, lost=lost)


def _gap(view: PartitionView) -> tuple[int, int] | None:
    if view.known is None or view.known.next_offset >= view.log_start:
        return None
    return view.known.next_offset, view.log_start


def plan_partition(topic: str, view: PartitionView, *, skip_to: int | None = None) -> PlannedRange | None:
    """The range a partition has to archive, None where there is nothing new. Raises DataLoss.

    `skip_to` is where to go on though offsets before it were lost.
    """
    if view.known is None:
        start = view.log_start if view.start is None else max(view.start, view.log_start)
        epoch = -1
    else:
        known = view.known if skip_to is None else replace(view.known, next_offset=skip_to)
        check_continuity(topic, view, known)
        start, epoch = known.next_offset, known.leader_epoch
    if start >= view.last_stable:
        return None
    return PlannedRange(
        partition=view.partition,
        start_offset=start,
        end_offset=view.last_stable,
        leader_epoch=epoch,
        owns_head=True,
    )


def check_continuity(topic: str, view: PartitionView, known: PartitionOffset) -> None:
    """Raise DataLoss unless the log still holds what follows `known`, and still is the log that was archived."""
    offset = known.next_offset
    if offset < view.log_start:
        raise losses.deleted(topic, view.partition, offset=offset, log_start=view.log_start, missing=view.missing)
    if view.epoch_end is not None and view.epoch_end < offset:
        raise losses.diverged(
            topic, view.partition, leader_epoch=known.leader_epoch, epoch_end=view.epoch_end, offset=offset
        )
    if view.last_stable < offset:
        raise losses.too_short(topic, view.partition, log_end=view.last_stable, offset=offset)


def furthest(table: Mapping[int, PartitionOffset], staged: Mapping[int, PartitionOffset]) -> dict[int, PartitionOffset]:
    """How far each partition has come, in the table or staged for it."""
    return {
        partition: max(
            (place[partition] for place in (table, staged) if partition in place), key=lambda end: end.next_offset
        )
        for partition in {*table, *staged}
    }
