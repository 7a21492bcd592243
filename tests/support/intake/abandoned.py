"""A log to give up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from archiver.topics.filled_state import FLIGHT_CLUSTER
from archiver.topics.lost_ranges import lost_ranges
from catalog.model import TranslatedRange
from catalog.offset_range import OffsetRange
from catalog.registry.intake_logs import IntakeLogRow
from tests.support.intake.memory_archive import MemoryArchive

ROW: Any = SimpleNamespace(id=7, topic="t", table="kafka.t", cluster_id=FLIGHT_CLUSTER)


@dataclass
class MemoryTable(MemoryArchive):
    def register(self) -> tuple[Any, Mapping[int, int]]:
        return ROW, self.accepted_ends()

    @contextmanager
    def leased(self, _row: Any) -> Iterator[None]:
        yield

    def lost(self, offsets: Sequence[OffsetRange]) -> tuple[TranslatedRange, ...]:
        return lost_ranges("t", offsets, known={}, schema_version=1)

    @property
    def lost_spans(self) -> list[tuple[int, int, int]]:
        return sorted((gap.partition, gap.start_offset, gap.end_offset) for gap in self.table if gap.lost)

    def rows(self) -> list[tuple[int, bytes]]:
        files = [file for range_ in self.table if range_.partition == 0 for file in range_.files]
        return sorted(row for file in files for row in self.objects[file.path])


@dataclass
class LogRegistry:
    log: IntakeLogRow | None
    drained_state: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] | None = None
    is_changed: bool = False

    @property
    def intake(self) -> LogRegistry:
        return self

    @property
    def topics(self) -> LogRegistry:
        return self

    def every(self) -> list[Any]:
        return [ROW]

    def of_topics(self, rows: Sequence[Any]) -> dict[int, IntakeLogRow]:
        return {ROW.id: self.log} if self.log is not None and rows else {}

    def last_state(self, _row: Any) -> Mapping[str, Any]:
        return self.drained_state

    def begin_abandon(self, _row: Any, *, log: IntakeLogRow, state: Mapping[str, Any]) -> bool:
        assert log is self.log
        if self.is_changed:
            return False
        stored = json.loads(json.dumps(state))
        abandoned = log.abandoned | {log.wal_id}
        self.log = replace(log, epoch=log.epoch + 1, states=[stored], abandoned=abandoned)
        return True

    def drain(self, _row: Any, *, wal_id: str, epoch: int, state: Mapping[str, Any]) -> bool:
        assert self.log is not None
        assert self.log.is_given_up
        self.state = state
        return (wal_id, epoch) == (self.log.wal_id, self.log.epoch)
