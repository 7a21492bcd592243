"""The events of an archive job, as one closed union: what the job tells its observer while it works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from archiver.ingest.plan.ranges import PlannedRange, SeenPartition
from archiver.ingest.report import JobReport
from archiver.ingest.task.values import TaskResult
from archiver.observer import Observer
from catalog.model import TranslatedRange
from schema_mapping.errors import ContextError

Step: TypeAlias = Literal["stage", "commit"]
"""What the driver does for a topic, besides planning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsOpened:
    """The run begins: these topics are checked and will be archived. `tables` gives each topic's table."""

    tables: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistryDown:
    """The schema registry doesn't answer; the topic goes on with the schemas last known."""

    topic: str
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsSeen:
    """How the topic's partitions stand, just before a wave is planned."""

    topic: str
    partitions: tuple[SeenPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WavePlanned:
    """A wave begins, with one task for each range of each topic. Waves count from 1."""

    wave: int
    ranges: Mapping[str, tuple[PlannedRange, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFinished:
    """A task came back. Its error is in the result; if the partition is given up for it, `Failed` follows."""

    topic: str
    planned: PlannedRange
    result: TaskResult


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished:
    """The driver took a step for the topic. A commit that had nothing to bring is not told."""

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
    """Something is wrong with a partition, or with the topic as a whole (`partition` is None).

    A partition is given up for this run. A topic may go on: the run's report has the last word.
    """

    topic: str
    partition: int | None
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """A run is over. A job that runs again and again tells this once a run."""

    report: JobReport


JobEvent: TypeAlias = (
    TopicsOpened
    | SchemaRegistryDown
    | PartitionsSeen
    | WavePlanned
    | TaskFinished
    | StepFinished
    | RangesCommitted
    | Failed
    | RunFinished
)

JobObserver: TypeAlias = Observer[JobEvent]
