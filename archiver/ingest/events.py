"""The events of an archive job, as one closed union."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from archiver.ingest.plan.ranges import PlannedRange
from archiver.ingest.report import JobReport
from archiver.ingest.task.values import TaskResult
from archiver.observer import Observer
from archiver.topics.seen_partition import SeenPartition
from catalog.model import TranslatedRange
from catalog.recognition import Doubt, Fit
from schema_mapping.columns.evolution import Change
from schema_mapping.errors import ContextError

Step: TypeAlias = Literal["stage", "commit"]
"""What the driver does for a topic, besides planning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWaiting:
    """A repeating job can't begin yet, and retries. Sent once per reason. `on` is "Kafka", "Postgres" or "topics"."""

    on: str
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsOpened:
    """The run begins. `tables` by topic."""

    tables: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistryDown:
    """Or it deleted a subject. Archiving continues with the last known schemas."""

    topic: str
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChanged:
    """`changes` may be empty. Not sent for the first version."""

    topic: str
    version: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChangeWaiting:
    """Sent once per schema, and once without changes when none waits.

    Archiving continues with the version in force, unless the topic halts.
    """

    topic: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDoubted:
    """The schema of `part` hardly fits the run's records.

    Sent at the end of a run unless `on_unrecognized = "ignore"`.
    """

    topic: str
    part: str
    fit: Fit
    doubt: Doubt


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNoted:
    topic: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsSeen:
    topic: str
    partitions: tuple[SeenPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WavePlanned:
    """A wave begins, with one task per range. Waves count from 1."""

    wave: int
    ranges: Mapping[str, tuple[PlannedRange, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFinished:
    """A task ended. `Failed` follows if the partition is given up."""

    topic: str
    planned: PlannedRange
    result: TaskResult


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished:
    topic: str
    step: Step
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RangesCommitted:
    topic: str
    ranges: tuple[TranslatedRange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """An error of a partition, or of the topic (None).

    A partition is given up for this run; a topic may continue.
    """

    topic: str
    partition: int | None
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    report: JobReport


SchemaEvent: TypeAlias = SchemaRegistryDown | SchemaChanged | SchemaChangeWaiting | SchemaDoubted | TableNoted

JobEvent: TypeAlias = (
    JobWaiting
    | TopicsOpened
    | SchemaEvent
    | PartitionsSeen
    | WavePlanned
    | TaskFinished
    | StepFinished
    | RangesCommitted
    | Failed
    | RunFinished
)

JobObserver: TypeAlias = Observer[JobEvent]
