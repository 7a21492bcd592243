"""The events of an archive job."""

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
    """A repeating job retries to begin. Sent once per reason: "Kafka", "Postgres" or "topics"."""

    on: str
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsOpened:
    """`tables` are by topic."""

    tables: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistryDown:
    """Or it deleted a subject. The last known schemas are used."""

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
    """Sent once per schema, and without changes when none waits any more."""

    topic: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDoubted:
    """Not sent with `on_unrecognized = "ignore"`."""

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
    """Waves count from 1."""

    wave: int
    ranges: Mapping[str, tuple[PlannedRange, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFinished:
    """`Failed` follows if the partition is given up."""

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
    """`partition` is None for an error of the topic.

    The run gives up the partition; a topic may continue.
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
