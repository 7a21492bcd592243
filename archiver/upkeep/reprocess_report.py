"""What a reprocessing tells while it runs, and what it comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from archiver.upkeep.error_rows import ErrorKind
from archiver.upkeep.reprocess_file import FileResult
from schema_mapping.errors import ContextError


class ReprocessObserver(Protocol):
    """Hears how a reprocessing goes."""

    def planned(self, files: int) -> None:
        """So many files may hold such rows; asked anew where others changed the table."""

    def file_done(self, result: FileResult) -> None:
        """A file was looked through, and written anew where that helps."""

    def failed(self, path: str, error: ContextError) -> None:
        """A file stays as it is."""


class SilentObserver:
    """Hears and says nothing."""

    def planned(self, files: int) -> None:
        """Say nothing."""

    def file_done(self, result: FileResult) -> None:
        """Say nothing."""

    def failed(self, path: str, error: ContextError) -> None:
        """Say nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReprocessReport:
    """What a reprocessing found and did; `commit_id` is None where nothing was to be committed."""

    topic: str
    table: str
    dry_run: bool
    schema_version: int
    results: tuple[FileResult, ...]
    failures: Mapping[str, ContextError]
    seconds: float
    commit_id: str | None = None
    schema_registry_down: ContextError | None = None
    """Why the schema registry couldn't be asked, where it was done by the schemas last known."""

    @property
    def found(self) -> Counter[ErrorKind]:
        """The errors that were asked for."""
        return sum((each.found for each in self.results), Counter())

    @property
    def mended(self) -> Counter[ErrorKind]:
        """Those of them that are gone, or would be."""
        return sum((each.mended for each in self.results), Counter())

    @property
    def succeeded(self) -> bool:
        """Whether every file could be read, and written where that was to be."""
        return not self.failures

    @property
    def files(self) -> int:
        """Files that were written anew, or would be."""
        return sum(1 for each in self.results if each.mended)
