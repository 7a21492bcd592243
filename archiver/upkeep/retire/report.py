"""The report of a retirement, and its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from archiver.errors import ConsentMissing
from archiver.observer import Observer
from archiver.storage.journal_sums import JournalSums
from archiver.upkeep.removal.purge import Purged
from schema_mapping.errors import ContextError


@dataclass(slots=True, kw_only=True)
class TopicRetired:
    """What was retired of one topic, or would be. It is filled during the run.

    `first_offsets` are where partitions begin after it, of those that moved. `rows` and `files` are what went out of
    the table, `rewritten` files that were written anew at the edge. `held` are the partitions of which a hold keeps
    more than the limits would, with its id; `kept` are those of which a file that can't go keeps more, with its path.
    `is_asked` says that the command named the limits: then a hold in their way is a failure. Where the configuration
    has them, holds are what its limits reckon with.
    `journal` is what was summed up in the journal, None where that wasn't tried or failed.
    `has_limits` is false if neither the configuration nor the command says what may go. `stopped` says that the time
    was over before all was done. `needs_consent` says why a dry run would ask first.
    """

    topic: str
    table: str
    first_offsets: dict[int, int] = field(default_factory=dict)
    rows: int = 0
    files: int = 0
    size_bytes: int = 0
    rewritten: int = 0
    commits: list[str] = field(default_factory=list)
    held: Mapping[int, str] = field(default_factory=dict)
    kept: Mapping[int, str] = field(default_factory=dict)
    purged: Purged = field(default_factory=Purged)
    journal: JournalSums | None = None
    failures: dict[str, ContextError] = field(default_factory=dict)
    has_limits: bool = True
    is_asked: bool = False
    stopped: bool = False
    needs_consent: tuple[str, ...] = ()
    error: ContextError | None = None

    @property
    def succeeded(self) -> bool:
        """Whether everything went that was asked for, and no file kept more that can't go."""
        is_done = self.error is None and not self.failures and not self.purged.failures
        return is_done and not self.kept and not (self.is_asked and self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireReport:
    """What a run retired of each topic."""

    topics: tuple[TopicRetired, ...]
    dry_run: bool
    seconds: float

    @property
    def succeeded(self) -> bool:
        """Whether every topic was done."""
        return all(each.succeeded for each in self.topics)

    @property
    def only_lacks_consent(self) -> bool:
        """Whether nothing failed but that some topics wait for consent."""
        failed = [topic for topic in self.topics if not topic.succeeded]
        return bool(failed) and all(isinstance(topic.error, ConsentMissing) for topic in failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementPlanned:
    """So many files and rows of a topic are to go. It is planned again where others change the table meanwhile."""

    topic: str
    files: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesRetired:
    """A commit took files out of the table."""

    topic: str
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireFailed:
    """A topic, or one of its files, could not be done."""

    topic: str
    path: str | None
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireFinished:
    """The run is over."""

    report: ExpireReport


ExpireEvent: TypeAlias = RetirementPlanned | FilesRetired | ExpireFailed | ExpireFinished

ExpireObserver: TypeAlias = Observer[ExpireEvent]
