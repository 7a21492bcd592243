"""The ledger of field ids, which never change (docs/schema-evolution.md).

An older version returns after ASKS consecutive requests over LASTING: producers may alternate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Literal, Self, TypeAlias

from schema_mapping.columns.paths import Path, Step
from schema_mapping.columns.types import AnyColumnType, ColumnType

__all__ = [
    "ASKS",
    "LAST_FIXED_ID",
    "AnyColumnType",
    "ColumnState",
    "ColumnType",
    "LedgerEntry",
    "LedgerState",
    "Path",
    "Returning",
    "Root",
    "SchemaVersion",
    "Step",
    "has_returned",
    "note_request",
]

Root: TypeAlias = Literal["key", "val"]

LAST_FIXED_ID: Final = 99

LASTING: Final = timedelta(hours=1)
ASKS: Final = 3


class ColumnState(StrEnum):
    """Whether the newest version writes the column."""

    LIVE = "live"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """`source_name` is the .proto's. `parent_id` is of the struct, list or map.

    `field_id` and `(root, path, generation)` are unique in the table.
    """

    root: Root
    path: Path
    generation: int
    parent_id: int
    field_id: int
    name: str
    source_name: str
    type: AnyColumnType
    state: ColumnState
    since_version: int
    deleted_version: int | None = None
    doc: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaVersion:
    """`mapping` is the `RowMapping` as JSON."""

    version: int
    fingerprint: str
    mapping: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Returning:
    """`since` is the first request; `asks` counts consecutive ones."""

    version: int
    since: datetime
    asks: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerState:
    """The newest version's columns have the plain names. `returning` is an older version that may return."""

    entries: tuple[LedgerEntry, ...] = ()
    versions: tuple[SchemaVersion, ...] = ()
    last_id: int = LAST_FIXED_ID
    returning: Returning | None = None

    def at_least(self, last_column_id: int) -> Self:
        """New ids start above `last_column_id`."""
        return replace(self, last_id=max(self.last_id, last_column_id))

    @property
    def newest(self) -> int:
        return max((version.version for version in self.versions), default=0)

    @property
    def in_force(self) -> SchemaVersion | None:
        """The newest version, or the returning one."""
        number = None if self.returning is None else self.returning.version
        return next((version for version in reversed(self.versions) if number in (None, version.version)), None)

    def version_of(self, fingerprint: str) -> SchemaVersion | None:
        """The newest with this fingerprint."""
        return next((version for version in reversed(self.versions) if version.fingerprint == fingerprint), None)


def note_request(state: LedgerState, seen: SchemaVersion, now: datetime) -> LedgerState:
    if seen is state.versions[-1]:
        return replace(state, returning=None)
    earlier = state.returning
    if earlier is None or earlier.version != seen.version:
        return replace(state, returning=Returning(version=seen.version, since=now))
    return replace(state, returning=replace(earlier, asks=earlier.asks + 1))


def has_returned(state: LedgerState, now: datetime) -> bool:
    returning = state.returning
    return returning is not None and returning.asks >= ASKS and now - returning.since >= LASTING
