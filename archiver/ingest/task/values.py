"""What goes to a task and what comes back: values that pickle, a driver's plan in and translated ranges out."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Protocol, Self

from archiver.files.range_writer import FileTarget
from archiver.ingest.plan.ranges import PlannedRange
from archiver.wire.columns import DecodedBatches
from catalog.model import TranslatedRange
from schema_mapping.errors import ContextError


class RangeSource(Protocol):
    """Where the records of a topic's ranges come from. Values of this type pickle."""

    def batches(self, planned: PlannedRange) -> Generator[DecodedBatches]:
        """Decoded pieces of the range in order, without gaps between them, up to its end.

        Raises the leaves of SourceError, and CorruptBatch, where the range can't be read on.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTarget(FileTarget):
    """What all tasks of a topic share: where its records come from, how they become rows, where the files go."""

    source: RangeSource


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslateTask:
    """One range to translate, under the `plan_time_ms` of its wave.

    The task stops at a batch border once `budget_seconds` have passed. `spool` is a folder on the worker's machine; the
    task's files there stay within `spool_bytes`, or one row group above.
    """

    target: TopicTarget
    planned: PlannedRange
    plan_time_ms: int
    budget_seconds: float
    spool: Path
    spool_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMetrics:
    """What a task did. Times are seconds of its own clock; `upload_seconds` pass beside the others.

    `source_bytes` are the surviving batches as they were on the wire.
    """

    records: int = 0
    batches: int = 0
    source_bytes: int = 0
    files: int = 0
    file_bytes: int = 0
    raw_values: int = 0
    fetch_seconds: float = 0.0
    translate_seconds: float = 0.0
    write_seconds: float = 0.0
    upload_seconds: float = 0.0

    @property
    def steps(self) -> dict[str, float]:
        """How long each step was at work, in seconds, in their order."""
        return {
            "fetch": self.fetch_seconds,
            "decode": self.translate_seconds,
            "write": self.write_seconds,
            "upload": self.upload_seconds,
        }

    def __add__(self, other: Self) -> Self:
        sums = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        return type(self)(**sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """What a task covered: ranges that follow each other from the planned start; fewer where `error` ended it early.

    `started_ns` and `finished_ns` are by the worker's clock, since 1970; 0 where it never came to say.
    `learned` are schemas, by id, that the schema registry had to be asked for.
    """

    ranges: tuple[TranslatedRange, ...]
    metrics: TaskMetrics = field(default_factory=TaskMetrics)
    error: ContextError | None = None
    started_ns: int = 0
    finished_ns: int = 0
    learned: Mapping[int, bytes] = field(default_factory=dict)
