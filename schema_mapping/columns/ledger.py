"""The ledger of field ids: it records the id of every column path, and never changes one (docs/schema-evolution.md).

An older schema version returns for good after ASKS requests over LASTING without any request for another version:
producers of two versions may alternate.
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
    """Whether the newest schema version writes the column."""

    LIVE = "live"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A column that exists or once existed.

    `field_id` is unique in the table, and so is `(root, path, generation)`. `parent_id` is the id of the enclosing
    struct, list or map. `source_name` is the name in the .proto, `doc` the comment. `since_version` and
    `deleted_version` are schema versions.
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
    """A version that the table was written with: its fingerprint, and its `RowMapping` as JSON text."""

    version: int
    fingerprint: str
    mapping: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Returning:
    """An older version that is requested again.

    `since` is the first request. `asks` counts consecutive requests.
    """

    version: int
    since: datetime
    asks: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerState:
    """The ledger of a table: entries by ascending id, versions ascending, and the last id.

    The newest version is in force: its columns have the plain names. `returning` is the older version that may return.
    """

    entries: tuple[LedgerEntry, ...] = ()
    versions: tuple[SchemaVersion, ...] = ()
    last_id: int = LAST_FIXED_ID
    returning: Returning | None = None

    def at_least(self, last_column_id: int) -> Self:
        """The same ledger; new ids will be above `last_column_id`, the table's last id."""
        return replace(self, last_id=max(self.last_id, last_column_id))

    @property
    def newest(self) -> int:
        """The number of the newest version, or 0."""
        return max((version.version for version in self.versions), default=0)

    @property
    def in_force(self) -> SchemaVersion | None:
        """The version requested last: the newest, or the returning one. None if there is none."""
        number = None if self.returning is None else self.returning.version
        return next((version for version in reversed(self.versions) if number in (None, version.version)), None)

    def version_of(self, fingerprint: str) -> SchemaVersion | None:
        """The newest version with this fingerprint; None if the table was never written with it."""
        return next((version for version in reversed(self.versions) if version.fingerprint == fingerprint), None)


def note_request(state: LedgerState, seen: SchemaVersion, now: datetime) -> LedgerState:
    """The ledger after a request for `seen`, a version that it has."""
    if seen is state.versions[-1]:
        return replace(state, returning=None)
    earlier = state.returning
    if earlier is None or earlier.version != seen.version:
        return replace(state, returning=Returning(version=seen.version, since=now))
    return replace(state, returning=replace(earlier, asks=earlier.asks + 1))


def has_returned(state: LedgerState, now: datetime) -> bool:
    """Whether the requested older version is in force again from now on."""
    returning = state.returning
    return returning is not None and returning.asks >= ASKS and now - returning.since >= LASTING
