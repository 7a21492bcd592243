"""The fence: which translated ranges continue their partitions, so that every offset has one owner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from catalog.model import PartitionOffset, TranslatedRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """The ranges that continue their partitions, and the reason for each of the others, by its id."""

    accepted: tuple[TranslatedRange, ...]
    rejected: Mapping[str, str]


def fence(ranges: Iterable[TranslatedRange], ends: Mapping[int, PartitionOffset]) -> Fenced:
    """Take the ranges in order of offset, each that starts where its partition ends.

    `ends` says where that is at first. A partition that is not in it begins with any range. A range that follows a
    rejected one goes on from the ranges of others only in the same leader epoch: whoever has one record of an epoch has
    all before it, but ranges of other epochs may be of another log than it was read from.
    """
    reached = dict(ends)
    skipped: dict[int, TranslatedRange] = {}
    accepted: list[TranslatedRange] = []
    rejected: dict[str, str] = {}
    for one in sorted(ranges, key=lambda one: (one.partition, one.start_offset, one.id)):
        reason = _misplaced(one, reached.get(one.partition), skipped.get(one.partition))
        if reason is None:
            reached[one.partition] = PartitionOffset(next_offset=one.end_offset, leader_epoch=one.leader_epoch)
            accepted.append(one)
        else:
            skipped[one.partition] = one
            rejected[one.id] = reason
    return Fenced(accepted=tuple(accepted), rejected=rejected)


def _misplaced(one: TranslatedRange, end: PartitionOffset | None, skipped: TranslatedRange | None) -> str | None:
    """Why a range doesn't continue its partition. None if it does. `skipped` is the last one rejected before it."""
    if end is None:
        return None
    if one.start_offset != end.next_offset:
        return f"starts at {one.start_offset}, its partition ends at {end.next_offset}"
    if skipped is None or skipped.end_offset != one.start_offset or skipped.leader_epoch == end.leader_epoch:
        return None
    return f"follows a range of leader epoch {skipped.leader_epoch}, its partition ends in epoch {end.leader_epoch}"
