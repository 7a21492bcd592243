"""What a job tells while it works, for whoever renders it. Calls come from one thread and must return soon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from archiver.ingest.plan import PartitionView, PlannedRange
from archiver.ingest.report import JobReport
from archiver.ingest.task_values import TaskResult
from catalog.model import TranslatedRange
from schema_mapping.errors import ContextError

Step: TypeAlias = Literal["stage", "commit"]


class JobObserver(Protocol):
    """Sees the job's progress."""

    def topics_opened(self, tables: Mapping[str, str]) -> None:
        """These topics, by table, are checked and will be archived."""

    def looked(self, topic: str, partitions: Sequence[PartitionView]) -> None:
        """This is how the topic's partitions stand, before a wave is planned."""

    def schema_registry_down(self, topic: str, error: ContextError) -> None:
        """The schema registry can't be asked; the topic goes on with what is remembered of it."""

    def wave_planned(self, wave: int, ranges: Mapping[str, Sequence[PlannedRange]]) -> None:
        """A wave begins: a task for each range of each topic."""

    def task_finished(self, topic: str, planned: PlannedRange, result: TaskResult) -> None:
        """A task came back; its error, if any, is told by `failed` too."""

    def step_finished(self, topic: str, step: Step, seconds: float) -> None:
        """The driver took a step for the topic; a commit only where there was something to commit."""

    def committed(self, topic: str, ranges: Sequence[TranslatedRange]) -> None:
        """These ranges are in the topic's table now."""

    def failed(self, topic: str, partition: int | None, error: ContextError) -> None:
        """A partition, or (None) a topic as a whole, can't go on in this run."""

    def finished(self, report: JobReport) -> None:
        """A run is over; with `run_every`, each."""


class SilentObserver:
    """Sees everything and tells nobody."""

    def topics_opened(self, tables: Mapping[str, str]) -> None:
        """Do nothing."""

    def looked(self, topic: str, partitions: Sequence[PartitionView]) -> None:
        """Do nothing."""

    def schema_registry_down(self, topic: str, error: ContextError) -> None:
        """Do nothing."""

    def wave_planned(self, wave: int, ranges: Mapping[str, Sequence[PlannedRange]]) -> None:
        """Do nothing."""

    def task_finished(self, topic: str, planned: PlannedRange, result: TaskResult) -> None:
        """Do nothing."""

    def step_finished(self, topic: str, step: Step, seconds: float) -> None:
        """Do nothing."""

    def committed(self, topic: str, ranges: Sequence[TranslatedRange]) -> None:
        """Do nothing."""

    def failed(self, topic: str, partition: int | None, error: ContextError) -> None:
        """Do nothing."""

    def finished(self, report: JobReport) -> None:
        """Do nothing."""
