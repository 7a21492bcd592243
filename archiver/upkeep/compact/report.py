"""The report of a compaction, and its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from archiver.observer import Observer
from archiver.upkeep.compact.choice import FileGroup, Reason
from archiver.upkeep.compact.task import GroupResult
from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """`removed` rows were deleted before. `moved` counts old files that changed table partition."""

    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    rows: int = 0
    removed: int = 0
    moved: int = 0
    cpu_seconds: float = 0.0

    @classmethod
    def of(cls, group: FileGroup, result: GroupResult) -> Merged:
        return cls(
            files_before=len(group.files),
            files_after=result.files,
            bytes_before=group.size_bytes,
            bytes_after=result.size_bytes,
            rows=result.rows,
            removed=result.removed,
            moved=len(group.files) if group.is_moved else 0,
            cpu_seconds=result.cpu_seconds,
        )

    def __add__(self, other: Merged) -> Merged:
        return Merged(
            files_before=self.files_before + other.files_before,
            files_after=self.files_after + other.files_after,
            bytes_before=self.bytes_before + other.bytes_before,
            bytes_after=self.bytes_after + other.bytes_after,
            rows=self.rows + other.rows,
            removed=self.removed + other.removed,
            moved=self.moved + other.moved,
            cpu_seconds=self.cpu_seconds + other.cpu_seconds,
        )


@dataclass(slots=True, kw_only=True)
class TopicCompaction:
    """Filled during the run. `failures` are by paths.

    `files` and `small_files` are counts at the start. With `fewer_merge`, `min_files` of 2 would merge some. `planned`
    is the first choice. `again` counts groups discarded after foreign changes. `partitioned_by` are transforms and
    field ids of a move.
    """

    topic: str
    table: str
    target_bytes: int = 0
    files: int = 0
    small_files: int = 0
    min_files: int = 0
    fewer_merge: bool = False
    planned: tuple[FileGroup, ...] = ()
    done: Merged = field(default_factory=Merged)
    commits: list[str] = field(default_factory=list)
    again: int = 0
    stopped: bool = False
    partitioned_by: str | None = None
    failures: dict[tuple[str, ...], ContextError] = field(default_factory=dict)
    error: ContextError | None = None

    @property
    def succeeded(self) -> bool:
        return self.error is None and not self.failures

    @property
    def planned_files(self) -> int:
        return sum(len(group.files) for group in self.planned)

    @property
    def planned_bytes(self) -> int:
        return sum(group.size_bytes for group in self.planned)

    @property
    def planned_moves(self) -> int:
        return sum(len(group.files) for group in self.planned if group.is_moved)

    @property
    def planned_move_bytes(self) -> int:
        return sum(group.size_bytes for group in self.planned if group.is_moved)

    @property
    def expected_files(self) -> int:
        return sum(group.expected_files(self.target_bytes) for group in self.planned)

    @property
    def reasons(self) -> Counter[Reason]:
        return Counter(reason for group in self.planned for reason in group.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactReport:
    topics: tuple[TopicCompaction, ...]
    dry_run: bool
    seconds: float

    @property
    def succeeded(self) -> bool:
        return all(topic.succeeded for topic in self.topics)

    @property
    def done(self) -> Merged:
        return sum((topic.done for topic in self.topics), Merged())


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsChosen:
    """Repeated if other engines change groups."""

    topic: str
    groups: Sequence[FileGroup]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMerged:
    """Uploaded and read back, but not in the table yet."""

    topic: str
    group: FileGroup
    result: GroupResult


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFailed:
    """Without `paths`, the topic failed."""

    topic: str
    paths: tuple[str, ...]
    error: ContextError
    partition: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsCommitted:
    topic: str
    commit_id: str
    done: Merged


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactFinished:
    report: CompactReport


CompactEvent: TypeAlias = GroupsChosen | GroupMerged | GroupFailed | GroupsCommitted | CompactFinished

CompactObserver: TypeAlias = Observer[CompactEvent]
