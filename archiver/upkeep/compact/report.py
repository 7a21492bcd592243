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
    """How much was put together: old files and new ones. `removed` rows had been deleted, and are in no new file.

    `moved` of the old files went to other partitions of the table.
    """

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
        """What became of one group."""
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
    """What was chosen in a topic's table, and what was done. It grows while the job works.

    `files` were in the table at the beginning, `small_files` of them below the size from which a file stays. Such files
    are merged from `min_files` of them on. `planned` are the groups chosen at first; later rounds may find other
    groups. `again` counts groups that were discarded because other engines changed their files. `partitioned_by` are
    the transforms and field ids of the partitions that files move to, None if none do. `failures` are by the paths of
    the files that stay because of them.
    """

    topic: str
    table: str
    target_bytes: int = 0
    files: int = 0
    small_files: int = 0
    min_files: int = 0
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
        """Whether every group that was taken up could be put together."""
        return self.error is None and not self.failures

    @property
    def planned_files(self) -> int:
        """How many files were chosen at first."""
        return sum(len(each.files) for each in self.planned)

    @property
    def planned_bytes(self) -> int:
        """The bytes of these files."""
        return sum(each.size_bytes for each in self.planned)

    @property
    def planned_moves(self) -> int:
        """How many of these files go to other partitions of the table."""
        return sum(len(each.files) for each in self.planned if each.is_moved)

    @property
    def planned_move_bytes(self) -> int:
        """The bytes of those."""
        return sum(each.size_bytes for each in self.planned if each.is_moved)

    @property
    def expected_files(self) -> int:
        """About how many files they become, by their size. Those that move may become many more."""
        return sum(each.expected_files(self.target_bytes) for each in self.planned)

    @property
    def reasons(self) -> Counter[Reason]:
        """How many of the chosen groups have each reason."""
        return Counter(reason for each in self.planned for reason in each.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactReport:
    """What a compaction did in all topics."""

    topics: tuple[TopicCompaction, ...]
    dry_run: bool
    seconds: float

    @property
    def succeeded(self) -> bool:
        """Whether nothing failed."""
        return all(each.succeeded for each in self.topics)

    @property
    def done(self) -> Merged:
        """What was done in all topics together."""
        return sum((each.done for each in self.topics), Merged())


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsChosen:
    """These groups are to be put together. They are chosen again where others changed the table meanwhile."""

    topic: str
    groups: Sequence[FileGroup]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMerged:
    """The new files of a group are uploaded and read back. They aren't in the table yet."""

    topic: str
    group: FileGroup
    result: GroupResult


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFailed:
    """These files of a Kafka partition stay as they are: they could not be put together. Without them, a topic."""

    topic: str
    paths: tuple[str, ...]
    error: ContextError
    partition: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsCommitted:
    """New files took the place of old ones in the table."""

    topic: str
    commit_id: str
    done: Merged


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactFinished:
    """The compaction is over."""

    report: CompactReport


CompactEvent: TypeAlias = GroupsChosen | GroupMerged | GroupFailed | GroupsCommitted | CompactFinished

CompactObserver: TypeAlias = Observer[CompactEvent]
