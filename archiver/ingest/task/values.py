"""The values to and from a task, picklable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Self

from archiver.files.range_files import FileTarget
from archiver.ingest.plan.ranges import PlannedRange
from archiver.ingest.task.log_source import LogSource
from catalog.model import SchemaIdentity, TranslatedRange
from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTarget(FileTarget):
    source: LogSource


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslateTask:
    """Stops after a whole batch once `budget_seconds` have passed.

    Files in `spool` take at most `spool_bytes` and one row group.
    """

    target: TopicTarget
    planned: PlannedRange
    plan_time_ms: int
    budget_seconds: float
    spool: Path
    spool_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMetrics:
    """Uploads run parallel to other steps. `source_bytes` are wire bytes."""

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
        return {
            "fetch": self.fetch_seconds,
            "decode": self.translate_seconds,
            "write": self.write_seconds,
            "upload": self.upload_seconds,
        }

    def __add__(self, other: Self) -> Self:
        sums = {metric.name: getattr(self, metric.name) + getattr(other, metric.name) for metric in fields(self)}
        return type(self)(**sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """Ranges without gaps from the planned start, up to an `error`.

    Times are since 1970 by the worker's clock, 0 if unknown. `learned` schemas are the schema registry's.
    """

    ranges: tuple[TranslatedRange, ...]
    metrics: TaskMetrics = field(default_factory=TaskMetrics)
    error: ContextError | None = None
    started_ns: int = 0
    finished_ns: int = 0
    learned: Mapping[SchemaIdentity, bytes] = field(default_factory=dict)
