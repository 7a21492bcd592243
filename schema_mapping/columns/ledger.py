"""The field-id ledger: which id each column path got, once and for ever (docs/schema-evolution.md).

An entry is known by its root, path and generation. Entries form a tree by `parent_id`. Pure values: `field_ids.assign`
makes new ones, the catalog keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, Self, TypeAlias

from schema_mapping.columns.paths import Path, Step
from schema_mapping.columns.types import AnyColumnType, ColumnType

__all__ = [
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
]

Root: TypeAlias = Literal["key", "val"]

LAST_FIXED_ID: Final = 99


class ColumnState(StrEnum):
    """Whether the newest schema version writes the column."""

    LIVE = "live"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One column that ever was. `field_id` is unique in the table; `(root, path, generation)` is too.

    `parent_id` is the enclosing struct's, list's or map's id, at the top the fixed id of `key` or `val`. `name` is the
    column's name now, `source_name` the name that the .proto asks for, `doc` the field's comment. `since_version` and
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
    """A version the table has been written with: its fingerprint, and its `RowMapping` as JSON text."""

    version: int
    fingerprint: str
    mapping: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Returning:
    """An older version that is asked for again: since when, and how often without anybody asking for another one."""

    version: int
    since: datetime
    asks: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerState:
    """All that is remembered of a table's columns: entries by ascending id, versions ascending, the last id given.

    The newest version is in force: its columns have the plain names. `returning` is the older one that may be so again.
    """

    entries: tuple[LedgerEntry, ...] = ()
    versions: tuple[SchemaVersion, ...] = ()
    last_id: int = LAST_FIXED_ID
    returning: Returning | None = None

    def at_least(self, last_column_id: int) -> Self:
        """The same ledger, giving only ids above `last_column_id` (the table's own) from now on."""
        return replace(self, last_id=max(self.last_id, last_column_id))

    def version_of(self, fingerprint: str) -> SchemaVersion | None:
        """The newest version with this fingerprint, if the table has ever been written with it."""
        return next((each for each in reversed(self.versions) if each.fingerprint == fingerprint), None)
