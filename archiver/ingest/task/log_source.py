"""What a source of records offers to the job's tasks. Kafka's is `archiver.ingest.kafka_log`."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from archiver.files.records import Records
from archiver.ingest.plan.ranges import PlannedRange


class LogReading(Protocol):
    """One range while it is read. `batches` and `source_bytes` count what was read, `seconds` how long that took."""

    batches: int
    source_bytes: int
    seconds: float

    def records(self) -> Generator[Records]:
        """The records of the range in order, without gaps, up to its end or to the end of the time.

        If the rest of the range can't be read, a subclass of ContextError is raised after what was read.
        """

    def leader_epoch(self, end_offset: int) -> int:
        """The last leader epoch before an offset up to which records were given. -1 for a source without epochs."""


class LogSource(Protocol):
    """The source of the records of a topic's ranges. Its values pickle."""

    def read(self, planned: PlannedRange, *, plan_time_ms: int, budget_seconds: float) -> LogReading:
        """Begin to read a range. Reading stops after a whole batch once `budget_seconds` have passed.

        Batches without a time get `plan_time_ms`, and no batch gets a later one.
        """

    @classmethod
    def sharing(cls, sources: Iterable[Any]) -> AbstractContextManager[None]:
        """A context in which sources of this class, read one after the other, share what is the same for all."""
