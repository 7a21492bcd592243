"""The events that an archive job tells its observer while it works, as one closed union."""

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
    """A job that repeats can't begin yet, and tries again by itself.

    `on` says what it waits for ("Kafka", "Postgres", "topics"), `error` why. It is told once for each reason.
    """

    on: str
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsOpened:
    """The run begins: these topics are checked and will be archived. `tables` has each topic's table."""

    tables: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistryDown:
    """The schema registry doesn't answer, or deleted a subject. The topic is archived with the schemas last known."""

    topic: str
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChanged:
    """The topic has a new schema version, not its first. `changes` are those of its columns; there may be none."""

    topic: str
    version: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChangeWaiting:
    """A schema change of the topic breaks queries (`changes`) and waits for approval.

    It is reported once for each schema, and once without changes when none waits any more. Archiving continues with the
    version in force, unless the topic halts.
    """

    topic: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDoubted:
    """The schema of the topic's keys or values (`part`) is hardly right: `fit` counts what the run committed.

    It is told once in a run, at its end, unless the topic says `on_unrecognized = "ignore"`.
    """

    topic: str
    part: str
    fit: Fit
    doubt: Doubt


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNoted:
    """What to know of the topic's table before its first record, or after its columns changed.

    `notes` are texts for people: limits of engines that the columns exceed, and what the catalog does on its own.
    """

    topic: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsSeen:
    """The state of the topic's partitions, just before a wave is planned."""

    topic: str
    partitions: tuple[SeenPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WavePlanned:
    """A wave begins, with one task per range. Waves count from 1."""

    wave: int
    ranges: Mapping[str, tuple[PlannedRange, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFinished:
    """A task ended. Its error is in the result; if the partition is given up because of it, `Failed` follows."""

    topic: str
    planned: PlannedRange
    result: TaskResult


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished:
    """The driver took a step for the topic. A commit that had nothing to commit gives no event."""

    topic: str
    step: Step
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RangesCommitted:
    """These ranges are in the topic's table now."""

    topic: str
    ranges: tuple[TranslatedRange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """An error of a partition, or of the topic as a whole (`partition` is None).

    A partition is given up for this run. A topic may continue: the run's report says what became of it.
    """

    topic: str
    partition: int | None
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """A run is over. A job that repeats tells this once per run."""

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
