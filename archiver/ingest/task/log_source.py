"""What a source of records offers to tasks. Kafka's is `archiver.ingest.kafka_log`."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from archiver.files.records import Records
from archiver.ingest.plan.ranges import PlannedRange


class LogReading(Protocol):
    """One range being read, with counts and seconds of reading."""

    batches: int
    source_bytes: int
    seconds: float

    def records(self) -> Generator[Records]:
        """The records in order, without gaps, to the end of range or time.

        Raises a ContextError after the readable part.
        """

    def leader_epoch(self, end_offset: int) -> int:
        """The last leader epoch before an offset up to which records were returned. -1 without epochs."""


class LogSource(Protocol):
    """The source of a topic's records. Its values pickle."""

    def read(
        self, planned: PlannedRange, *, plan_time_ms: int, budget_seconds: float, shared: Any = None
    ) -> LogReading:
        """Begin to read a range. Reading stops after a whole batch once `budget_seconds` have passed.

        Batches without a time get `plan_time_ms`, which also caps all times. `shared` is from `sharing`.
        """

    @classmethod
    def sharing(cls, sources: Iterable[Any]) -> AbstractContextManager[Any]:
        """What sources that are read in sequence share, for `read`."""
