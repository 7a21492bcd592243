"""The expected table, without code of the archiver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.chaos.other_engine import Place


class RecordState(StrEnum):
    LIVE = "live"
    DELETED = "deleted by another engine"
    ACCEPTED = "deleted by another engine, and accepted as gone"
    ERASED = "erased"
    RETIRED = "retired"


@dataclass(slots=True, kw_only=True)
class Model:
    """`is_set_back`: by another engine. `knows_all` is false once registry and journal were lost."""

    kafka: dict[Place, Any] = field(default_factory=dict)
    states: dict[Place, RecordState] = field(default_factory=dict)
    first_offsets: dict[int, int] = field(default_factory=dict)
    snapshots: dict[int, frozenset[Place]] = field(default_factory=dict)
    alien: frozenset[Place] = frozenset()
    is_set_back: bool = False
    knows_all: bool = True

    def of(self, *states: RecordState) -> list[Place]:
        return sorted(place for place, state in self.states.items() if state in states)

    @property
    def live(self) -> list[Place]:
        return self.of(RecordState.LIVE)

    @property
    def missing(self) -> list[Place]:
        return self.of(RecordState.DELETED)

    @property
    def is_intact(self) -> bool:
        return not (self.missing or self.alien or self.is_set_back)

    @property
    def waiting(self) -> list[Place]:
        return sorted(self.kafka.keys() - self.states.keys())

    @property
    def partitions(self) -> list[int]:
        return sorted({partition for partition, _ in self.kafka})

    def end(self, partition: int) -> int:
        return max((offset + 1 for number, offset in self.states if number == partition), default=0)

    def put(self, places: Iterable[Place], state: RecordState) -> None:
        self.states.update(dict.fromkeys(places, state))

    def deleted(self, places: Iterable[Place]) -> None:
        self.put((place for place in places if self.states[place] is RecordState.LIVE), RecordState.DELETED)

    def retired(self, first_offsets: Mapping[int, int]) -> None:
        self.first_offsets |= first_offsets
        gone = (RecordState.LIVE, RecordState.DELETED)
        below = [place for place in self.of(*gone) if place[1] < self.first_offsets.get(place[0], 0)]
        self.put(below, RecordState.RETIRED)

    def set_to(self, content: frozenset[Place], *, is_set_back: bool = False) -> None:
        """Restore a snapshot. `is_set_back`: its history lacks commits, even if it has all rows."""
        lost = [place for place in self.live if place not in content]
        self.put([place for place in self.missing if place in content], RecordState.LIVE)
        self.deleted(lost)
        self.is_set_back = is_set_back or bool(self.missing)
