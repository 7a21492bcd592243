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
    """Filled during the run. `rows` and `files` left the table; `rewritten` counts edge files.

    `held` and `kept` are the limiting holds and files by partition; a hold is a failure only if `is_asked`: the command
    named the limits. `journal` is None if summing up was skipped or failed. `needs_consent` is why a dry run would need
    consent. `has_limits` is false without any limit.
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
        is_done = self.error is None and not self.failures and not self.purged.failures
        return is_done and not self.kept and not (self.is_asked and self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireReport:
    topics: tuple[TopicRetired, ...]
    dry_run: bool
    seconds: float

    @property
    def succeeded(self) -> bool:
        return all(topic.succeeded for topic in self.topics)

    @property
    def only_lacks_consent(self) -> bool:
        failed = [topic for topic in self.topics if not topic.succeeded]
        return bool(failed) and all(isinstance(topic.error, ConsentMissing) for topic in failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementPlanned:
    """Repeated if other engines change the table."""

    topic: str
    files: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesRetired:
    topic: str
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireFailed:
    topic: str
    path: str | None
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireFinished:
    report: ExpireReport


ExpireEvent: TypeAlias = RetirementPlanned | FilesRetired | ExpireFailed | ExpireFinished

ExpireObserver: TypeAlias = Observer[ExpireEvent]
