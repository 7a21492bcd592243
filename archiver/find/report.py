"""The counts of a search."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from archiver.storage.metered import ReadMeter

BY_POSITION: Final = "partition and offset"
BY_TIME: Final = "time"
BY_KEY: Final = "bounds of keys"
BY_COLUMN: Final = "bounds of columns"
BY_RETIREMENT: Final = "retired records"
BY_STATISTICS: Final = "statistics"
BY_VALUES: Final = "sets of values"
BY_INDEX: Final = "the index"
BY_FILTER: Final = "bloom filters"

REASONS: Final = (BY_RETIREMENT, BY_POSITION, BY_TIME, BY_KEY, BY_COLUMN, BY_STATISTICS, BY_VALUES, BY_INDEX, BY_FILTER)
"""In the order in which they are tried."""


@dataclass(slots=True)
class FindReport:
    """The counts of a search, by reason for ruled-out files and blocks (row groups). Thread-safe.

    `point_rows` are records read by position.
    """

    topics: int = 0
    files: int = 0
    files_opened: int = 0
    blocks: int = 0
    blocks_read: int = 0
    rows_judged: int = 0
    matches: int = 0
    point_rows: int = 0
    records: int = 0
    unjudged: int = 0
    files_out: Counter[str] = field(default_factory=Counter)
    blocks_out: Counter[str] = field(default_factory=Counter)
    reads: ReadMeter = field(default_factory=ReadMeter)
    """Requests for data files and their delete files. Manifests aren't counted."""
    index_runs: int = 0
    index_leaves: int = 0
    index_reads: ReadMeter = field(default_factory=ReadMeter)
    """Requests for runs of the index."""
    index_error: str | None = None
    """Why the index, or some of its runs, isn't used."""
    registry_error: str | None = None
    """Why the registry's values of files aren't used. Each topic would fail in the same way."""
    _lock: Lock = field(default_factory=Lock)

    def add(self, **counts: int) -> None:
        with self._lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)

    def rule_out(self, *, files: Counter[str] | None = None, blocks: Counter[str] | None = None) -> None:
        with self._lock:
            self.files_out.update(files or {})
            self.blocks_out.update(blocks or {})
