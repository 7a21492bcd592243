"""The fence: which ranges continue their partitions, so that every offset has one owner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from catalog.model import PartitionOffset, TranslatedRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """`rejected` has reasons by id."""

    accepted: tuple[TranslatedRange, ...]
    rejected: Mapping[str, str]


def fence(ranges: Iterable[TranslatedRange], ends: Mapping[int, PartitionOffset]) -> Fenced:
    """Accept ranges in offset order that start at their partition's end.

    Unknown partitions begin anywhere. After a rejected range, one may follow another process's only in the same leader
    epoch, which proves one log.
    """
    reached = dict(ends)
    skipped: dict[int, TranslatedRange] = {}
    accepted: list[TranslatedRange] = []
    rejected: dict[str, str] = {}
    for range_ in sorted(ranges, key=lambda entry: (entry.partition, entry.start_offset, entry.id)):
        reason = _misplaced(range_, reached.get(range_.partition), skipped.get(range_.partition))
        if reason is None:
            reached[range_.partition] = PartitionOffset(next_offset=range_.end_offset, leader_epoch=range_.leader_epoch)
            accepted.append(range_)
        else:
            skipped[range_.partition] = range_
            rejected[range_.id] = reason
    return Fenced(accepted=tuple(accepted), rejected=rejected)


def _misplaced(one: TranslatedRange, end: PartitionOffset | None, skipped: TranslatedRange | None) -> str | None:
    if end is None:
        return None
    if one.start_offset != end.next_offset:
        return f"starts at {one.start_offset}, its partition ends at {end.next_offset}"
    if skipped is None or skipped.end_offset != one.start_offset or skipped.leader_epoch == end.leader_epoch:
        return None
    return f"follows a range of leader epoch {skipped.leader_epoch}, its partition ends in epoch {end.leader_epoch}"
