"""Several observers as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archiver.ingest.observer import JobObserver, Step
from archiver.ingest.plan import PartitionView, PlannedRange
from archiver.ingest.report import JobReport
from archiver.ingest.task_values import TaskResult
from catalog.model import TranslatedRange
from schema_mapping.errors import ContextError


class Observers:
    """Tells each of them in turn."""

    def __init__(self, *each: JobObserver) -> None:
        self._each = each

    def topics_opened(self, tables: Mapping[str, str]) -> None:
        """Pass it on."""
        for one in self._each:
            one.topics_opened(tables)

    def schema_registry_down(self, topic: str, error: ContextError) -> None:
        """Pass it on."""
        for one in self._each:
            one.schema_registry_down(topic, error)

    def looked(self, topic: str, partitions: Sequence[PartitionView]) -> None:
        """Pass it on."""
        for one in self._each:
            one.looked(topic, partitions)

    def wave_planned(self, wave: int, ranges: Mapping[str, Sequence[PlannedRange]]) -> None:
        """Pass it on."""
        for one in self._each:
            one.wave_planned(wave, ranges)

    def task_finished(self, topic: str, planned: PlannedRange, result: TaskResult) -> None:
        """Pass it on."""
        for one in self._each:
            one.task_finished(topic, planned, result)

    def step_finished(self, topic: str, step: Step, seconds: float) -> None:
        """Pass it on."""
        for one in self._each:
            one.step_finished(topic, step, seconds)

    def committed(self, topic: str, ranges: Sequence[TranslatedRange]) -> None:
        """Pass it on."""
        for one in self._each:
            one.committed(topic, ranges)

    def failed(self, topic: str, partition: int | None, error: ContextError) -> None:
        """Pass it on."""
        for one in self._each:
            one.failed(topic, partition, error)

    def finished(self, report: JobReport) -> None:
        """Pass it on."""
        for one in self._each:
            one.finished(report)
