"""Assign a topic's columns: load, extend and store the field-id ledger under the topic's row lock.

`schema_mapping.field_ids.assign` decides without I/O; the decision is kept for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from catalog.errors import ColumnsMoved, RegistryBehind, WouldBecomeRaw
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import TopicRow
from catalog.registry import history, ledger_rows, topics
from catalog.registry.ledger_rows import SeenLedger
from catalog.registry.postgres import Connection
from schema_mapping.columns.ledger import LedgerState
from schema_mapping.columns.options import MappingOptions

if TYPE_CHECKING:
    from schema_mapping.field_ids import Assignment
    from schema_mapping.row import PartitionSource
    from schema_mapping.value_format import DeclaredSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredColumns:
    """None stands for keys or values without a schema."""

    key: DeclaredSchema | None
    value: DeclaredSchema | None
    options: MappingOptions | None = None
    partition_source: PartitionSource = "nested"

    def assign(self, state: LedgerState, *, now: datetime | None) -> Assignment:
        from schema_mapping.field_ids import assign

        return assign(
            state,
            key=self.key,
            value=self.value,
            options=self.options,
            partition_source=self.partition_source,
            now=now,
        )


def assign_columns(
    connection: Connection,
    topic: TopicRow,
    columns: DeclaredColumns,
    *,
    table: ArchiveTable | None,
    accept_raw: bool = False,
    expected: Assignment | None = None,
) -> Assignment:
    """Store the ledger under the topic's row lock. New ids follow the table's last column id.

    Raises RegistryBehind for another or newer table, WouldBecomeRaw if a schema is gone (unless `accept_raw`),
    ColumnsMoved if a new version differs from `expected`: then nothing is stored.
    """
    seen = ledger_rows.read_locked(connection, topic)
    before = seen.state
    if table is None or seen.table_uuid != table.uuid:
        topics.check_table(connection, topic, table.uuid if table else None)
    _check_not_newer(topic, table, before)
    if not accept_raw:
        refuse_raw(topic, before, columns)
    reserved = before.at_least(table.last_column_id) if table else before
    assignment = columns.assign(reserved, now=seen.now)
    if expected is not None and assignment.is_new and not _same_version(assignment, expected):
        raise ColumnsMoved(
            "another process made a schema version of the topic. The next run looks at the schema again",
            topic=topic.topic,
            table=topic.table,
            schema_version=assignment.version,
        )
    ledger_rows.store(connection, topic, before, assignment.state)
    if assignment.version > before.newest:
        history.record(connection, topic, assignment.version, assignment.changes)
    return assignment


def _same_version(assignment: Assignment, expected: Assignment) -> bool:
    return (assignment.version, assignment.fingerprint) == (expected.version, expected.fingerprint)


def unchanged_columns(
    seen: SeenLedger, columns: DeclaredColumns, *, table: ArchiveTable, accept_raw: bool = False
) -> Assignment | None:
    """The result of `assign_columns`, without a lock. None if it would store or refuse: then call it."""
    state = seen.state
    if seen.table_uuid != table.uuid or table.ledger_version > state.newest or table.last_column_id > state.last_id:
        return None
    if not accept_raw and becomes_raw(state, columns) is not None:
        return None
    assignment = columns.assign(state, now=seen.now)
    return assignment if assignment.state == state else None


def refuse_raw(topic: TopicRow, state: LedgerState, columns: DeclaredColumns) -> None:
    """Raise WouldBecomeRaw if keys or values would lose their schema."""
    in_force, part = state.in_force, becomes_raw(state, columns)
    if in_force is not None and part is not None:
        raise WouldBecomeRaw(
            f"the topic's {part}s are archived with a schema, and its section of the configuration names none: from"
            f" now on they would be bytes without columns. Give the section its `{part}` back, or accept it with"
            " --accept-raw",
            topic=topic.topic,
            table=topic.table,
            schema_version=in_force.version,
        )


def becomes_raw(state: LedgerState, columns: DeclaredColumns) -> str | None:
    """Return `key` or `value` if it would lose its schema."""
    from schema_mapping.raw_mapping import RAW_FORMAT
    from schema_mapping.row import part_formats

    if state.in_force is None:
        return None
    formats = part_formats(state.in_force.mapping)
    declared = (("key", columns.key), ("value", columns.value))
    return next((part for part, schema in declared if schema is None and formats[part] != RAW_FORMAT), None)


def check_table(connection: Connection, topic: TopicRow, table: ArchiveTable | None, state: LedgerState) -> None:
    """Raise RegistryBehind if `table` isn't the registered one, or newer than `state`."""
    topics.check_table(connection, topic, table.uuid if table else None)
    _check_not_newer(topic, table, state)


def _check_not_newer(topic: TopicRow, table: ArchiveTable | None, state: LedgerState) -> None:
    if table is not None and table.ledger_version > state.newest:
        raise RegistryBehind(
            "the table's columns are newer than the registry: its database is new, or was restored from an old state."
            " Run `archiver registry rebuild`, or restore a newer backup",
            topic=topic.topic,
            table=topic.table,
            table_version=table.ledger_version,
            registry_version=state.newest,
        )


def check_loaded_table(connection: Connection, topic: TopicRow, table: ArchiveTable | None) -> None:
    """Raises RegistryBehind like `check_table`."""
    check_table(connection, topic, table, ledger_rows.load(connection, topic))
