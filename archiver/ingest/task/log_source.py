"""The interface of record sources. Kafka's is `archiver.ingest.kafka_log`."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from archiver.files.records import Records
from archiver.ingest.plan.ranges import PlannedRange


class LogReading(Protocol):
    batches: int
    source_bytes: int
    seconds: float

    def records(self) -> Generator[Records]:
        """In order, without gaps. Raises a ContextError after the readable part."""

    def leader_epoch(self, end_offset: int) -> int:
        """Before an offset that was reached. -1 without epochs."""


class LogSource(Protocol):
    """Picklable."""

    def read(
        self, planned: PlannedRange, *, plan_time_ms: int, budget_seconds: float, shared: Any = None
    ) -> LogReading:
        """Stops after a whole batch once `budget_seconds` have passed.

        Batches without a time get `plan_time_ms`, which also caps all times. `shared` is from `sharing`.
        """

    @classmethod
    def sharing(cls, sources: Iterable[Any]) -> AbstractContextManager[Any]:
        """For sources that are read in sequence."""
