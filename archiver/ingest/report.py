"""Reports of a job by topic and partition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self

from archiver.ingest.task.values import TaskMetrics
from catalog.digests import add_digests, digest_text
from catalog.model import TranslatedRange
from catalog.recognition import Recognition
from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReport:
    """Committed offsets [`from_offset`, `to_offset`), None if nothing.

    `digest` (docs/digest.md) is None if a file has none. `lost_offsets` were accepted.
    """

    partition: int
    from_offset: int | None = None
    to_offset: int | None = None
    records: int = 0
    files: int = 0
    file_bytes: int = 0
    raw_values: int = 0
    lost_offsets: int = 0
    digest: str | None = digest_text(0)
    recognition: Recognition = field(default_factory=Recognition)
    error: ContextError | None = None

    def committed(self, ranges: Iterable[TranslatedRange]) -> Self:
        report = self
        for range_ in ranges:
            report = replace(
                report,
                from_offset=range_.start_offset if report.from_offset is None else report.from_offset,
                to_offset=range_.end_offset,
                records=report.records + range_.rows,
                files=report.files + len(range_.files),
                file_bytes=report.file_bytes + sum(file.size_bytes for file in range_.files),
                raw_values=report.raw_values + sum(file.raw_values for file in range_.files),
                lost_offsets=report.lost_offsets + (range_.end_offset - range_.start_offset if range_.lost else 0),
                digest=add_digests((report.digest, range_.digest)),
                recognition=sum((file.recognition or Recognition() for file in range_.files), report.recognition),
            )
        return report


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReport:
    """`metrics` sum its tasks."""

    topic: str
    table: str
    partitions: tuple[PartitionReport, ...] = ()
    commits: int = 0
    metrics: TaskMetrics = field(default_factory=TaskMetrics)
    error: ContextError | None = None

    @property
    def records(self) -> int:
        return sum(partition.records for partition in self.partitions)

    @property
    def files(self) -> int:
        return sum(partition.files for partition in self.partitions)

    @property
    def file_bytes(self) -> int:
        return sum(partition.file_bytes for partition in self.partitions)

    @property
    def digest(self) -> str | None:
        return add_digests(partition.digest for partition in self.partitions)

    @property
    def recognition(self) -> Recognition:
        return sum((partition.recognition for partition in self.partitions), Recognition())

    @property
    def raw_share(self) -> float:
        """The share of values with a schema kept in `__raw__`, 0 to 1."""
        fit = self.recognition.value
        return fit.share(fit.raw)

    @property
    def failures(self) -> tuple[tuple[int | None, ContextError], ...]:
        whole = ((None, self.error),) if self.error else ()
        return whole + tuple((partition.partition, partition.error) for partition in self.partitions if partition.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """`stopped` on request; `error` ended the whole run."""

    topics: tuple[TopicReport, ...]
    waves: int
    seconds: float
    stopped: bool = False
    error: ContextError | None = None

    def following(self, before: Self) -> Self:
        """Take topics that a stopped run didn't reach from `before`."""
        if not self.stopped:
            return self
        reached = {topic.topic for topic in self.topics}
        missed = [topic for topic in before.topics if topic.topic not in reached]
        error = self.error or (None if self.topics else before.error)
        return replace(
            self, topics=tuple(sorted([*self.topics, *missed], key=lambda report: report.topic)), error=error
        )

    @property
    def succeeded(self) -> bool:
        return self.error is None and not any(topic.failures for topic in self.topics)

    @property
    def records(self) -> int:
        return sum(topic.records for topic in self.topics)
