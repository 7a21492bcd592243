"""What the tasks of a compaction share. Picklable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from archiver.rewrite.target import RewriteTarget
from catalog.partitioning import Partitioning


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPlaces:
    """`data_location` is above the partition folders. `room` is in bytes, approximately."""

    spec_id: int
    partitioning: Partitioning
    data_location: str
    room: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTarget:
    """`held_bytes` bounds a task's buffered rows."""

    files: RewriteTarget
    target_bytes: int
    held_bytes: int
    places: NewPlaces | None = None

    def for_tasks(self, at_once: int) -> Self:
        places = self.places
        return replace(self, places=None if places is None else replace(places, room=places.room // at_once))
