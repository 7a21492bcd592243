"""The report of a reprocessing, and its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from archiver.observer import Observer
from archiver.upkeep.reprocess.file import ReprocessedFile
from archiver.upkeep.reprocess.poor_rows import ErrorKind
from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReprocessReport:
    """`commit_id` is None if there was nothing to commit."""

    topic: str
    table: str
    dry_run: bool
    schema_version: int
    results: tuple[ReprocessedFile, ...]
    failures: Mapping[str, ContextError]
    seconds: float
    commit_id: str | None = None
    schema_registry_down: ContextError | None = None
    """Why the schema registry couldn't be asked, if the last known schemas were used."""

    @property
    def found(self) -> Counter[ErrorKind]:
        return sum((result.found for result in self.results), Counter())

    @property
    def mended(self) -> Counter[ErrorKind]:
        """In a dry run, rows that would improve."""
        return sum((result.mended for result in self.results), Counter())

    @property
    def succeeded(self) -> bool:
        return not self.failures

    @property
    def files(self) -> int:
        return sum(1 for result in self.results if result.mended)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReprocessPlanned:
    """Repeated if other engines change the table."""

    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReprocessed:
    result: ReprocessedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFailed:
    path: str
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReprocessFinished:
    report: ReprocessReport


ReprocessEvent: TypeAlias = ReprocessPlanned | FileReprocessed | FileFailed | ReprocessFinished

ReprocessObserver: TypeAlias = Observer[ReprocessEvent]
