"""The field-id ledger of a topic in Postgres: loaded, extended and stored under the topic's row lock.

`schema_mapping.field_ids.assign`, which does no I/O, decides what an id means. This module keeps the decision for ever.
Functions take a connection inside a transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from catalog.errors import RegistryBehind, RegistryError, WouldBecomeRaw
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import TopicRow
from catalog.registry import history, topics
from catalog.registry.postgres import Connection
from schema_mapping.columns.ledger import (
    LAST_FIXED_ID,
    ColumnState,
    LedgerEntry,
    LedgerState,
    Returning,
    SchemaVersion,
)
from schema_mapping.columns.options import MappingOptions
from schema_mapping.columns.paths import read_path, stored_path
from schema_mapping.columns.types import read_type

if TYPE_CHECKING:
    from schema_mapping.field_ids import Assignment
    from schema_mapping.row import PartitionSource, RowMapping
    from schema_mapping.value_format import DeclaredSchema

_LAST: Final = "last_field_id, returning_version, returning_since, returning_asks"


def assign_columns(
    connection: Connection,
    topic: TopicRow,
    *,
    key: DeclaredSchema | None,
    value: DeclaredSchema | None,
    table: ArchiveTable | None,
    options: MappingOptions | None = None,
    partition_source: PartitionSource = "nested",
    accept_raw: bool = False,
) -> Assignment:
    """Assign field ids with `schema_mapping.field_ids.assign`, and store the ledger under the topic's row lock.

    So all processes agree. `table` is the topic's table in the catalog now, None where there is none. New ids start
    after its last column id. RegistryBehind where the registry knows another table, or knows less than the table.
    WouldBecomeRaw where keys or values had a schema and have none now, unless `accept_raw`. Use the result for the
    mapping of files, and `SchemaChange.of` it for commits.
    """
    from schema_mapping.field_ids import assign

    row = _locked(connection, topic)
    before = _state(*_columns_and_versions(connection, topic), row.last_id, row.returning)
    newest = max((each.version for each in before.versions), default=0)
    if table is None or row.table_uuid != table.uuid:
        topics.check_table(connection, topic, table.uuid if table else None)
    _check_not_newer(topic, table, before)
    if not accept_raw:
        refuse_raw(topic, before, key=key, value=value)
    reserved = before.at_least(table.last_column_id) if table else before
    assignment = assign(reserved, key=key, value=value, options=options, partition_source=partition_source, now=row.now)
    store(connection, topic, before, assignment.state)
    if assignment.version > newest:
        history.record(connection, topic, assignment.version, assignment.changes)
    return assignment


def refuse_raw(
    topic: TopicRow, state: LedgerState, *, key: DeclaredSchema | None, value: DeclaredSchema | None
) -> None:
    """WouldBecomeRaw where keys or values have a schema in the version in force, and None is given for it."""
    from schema_mapping.raw_mapping import RAW_FORMAT
    from schema_mapping.row import part_formats

    in_force = state.in_force
    if in_force is None:
        return
    formats = part_formats(in_force.mapping)
    for part, schema in (("key", key), ("value", value)):
        if schema is None and formats[part] != RAW_FORMAT:
            raise WouldBecomeRaw(
                f"the topic's {part}s are archived with a schema, and its section of the configuration names none: from"
                f" now on they would be bytes without columns. Give the section its `{part}` back, or accept it with"
                " --accept-raw",
                topic=topic.topic,
                table=topic.table,
                schema_version=in_force.version,
            )


def check_table(connection: Connection, topic: TopicRow, table: ArchiveTable | None, state: LedgerState) -> None:
    """RegistryBehind where `table` is not the registry's, or is newer than `state`. None means no table."""
    topics.check_table(connection, topic, table.uuid if table else None)
    _check_not_newer(topic, table, state)


def _check_not_newer(topic: TopicRow, table: ArchiveTable | None, state: LedgerState) -> None:
    newest = max((each.version for each in state.versions), default=0)
    if table is not None and table.ledger_version > newest:
        raise RegistryBehind(
            "the table's columns are newer than the registry: its database is new, or was restored from an old state."
            " Run `archiver registry rebuild`, or restore a newer backup",
            topic=topic.topic,
            table=topic.table,
            table_version=table.ledger_version,
            registry_version=newest,
        )


def check_loaded_table(connection: Connection, topic: TopicRow, table: ArchiveTable | None) -> None:
    """RegistryBehind where the registry knows another table, or where the table is newer than the registry."""
    check_table(connection, topic, table, load(connection, topic))


def load(connection: Connection, topic: TopicRow) -> LedgerState:
    """The ledger of the topic's columns."""
    entries, versions = _columns_and_versions(connection, topic)
    # Last: without a lock, others may assign ids in between. Then the highest is too high, which does no harm.
    last = connection.execute(f"SELECT {_LAST} FROM topics WHERE id = %s", (topic.id,)).fetchone()  # noqa: S608 - no input
    return _state(entries, versions, last[0] if last else 0, _returning(*last[1:]) if last else None)


def _columns_and_versions(
    connection: Connection, topic: TopicRow
) -> tuple[tuple[LedgerEntry, ...], tuple[SchemaVersion, ...]]:
    entries = connection.execute(
        "SELECT root, path, generation, parent_id, field_id, name, source_name, type, state, since_version,"
        " deleted_version, doc FROM field_ids WHERE topic_id = %s ORDER BY field_id",
        (topic.id,),
    ).fetchall()
    versions = connection.execute(
        "SELECT version, fingerprint, row_mapping::text FROM schema_versions WHERE topic_id = %s ORDER BY version",
        (topic.id,),
    ).fetchall()
    return tuple(map(_entry, entries)), tuple(
        SchemaVersion(version=version, fingerprint=fingerprint, mapping=mapping)
        for version, fingerprint, mapping in versions
    )


def _state(
    entries: tuple[LedgerEntry, ...], versions: tuple[SchemaVersion, ...], last_id: int, returning: Returning | None
) -> LedgerState:
    return LedgerState(entries=entries, versions=versions, last_id=max(LAST_FIXED_ID, last_id), returning=returning)


def _returning(version: int | None, since: datetime | None, asks: int | None) -> Returning | None:
    if version is None or since is None or asks is None:
        return None
    return Returning(version=version, since=since, asks=asks)


@dataclass(frozen=True, slots=True)
class _Row:
    """A topic's row under its lock. `now` is the time of the database's clock, which all archivers share."""

    table_uuid: UUID | None
    now: datetime
    last_id: int
    returning: Returning | None


def _locked(connection: Connection, topic: TopicRow) -> _Row:
    """Take the topic's row lock, and read the row as it is then."""
    found = connection.execute(
        f"SELECT table_uuid, clock_timestamp(), {_LAST} FROM topics WHERE id = %s FOR UPDATE",  # noqa: S608 - no input
        (topic.id,),
    ).fetchone()
    if found is None:
        raise topics.unknown(topic)
    table_uuid, now, last_id, *returning = found
    return _Row(table_uuid, now, last_id, _returning(*returning))


def row_mapping(connection: Connection, topic: TopicRow, version: int) -> RowMapping:
    """The mapping of a schema version, which its rows were written with.

    RegistryError where the registry has no such version.
    """
    from schema_mapping.row import row_mapping_from_text

    found = connection.execute(
        "SELECT row_mapping::text FROM schema_versions WHERE topic_id = %s AND version = %s", (topic.id, version)
    ).fetchone()
    if found is None:
        raise RegistryError(
            "the registry does not know a schema version that rows were written with. Run `archiver registry rebuild`,"
            " or restore a newer backup of its database",
            topic=topic.topic,
            schema_version=version,
        )
    return row_mapping_from_text(found[0])


_UPSERT = """
INSERT INTO field_ids (topic_id, root, path, generation, parent_id, field_id, name, source_name, type, state,
                       since_version, deleted_version, doc)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (topic_id, root, path, generation) DO UPDATE
SET parent_id = excluded.parent_id, name = excluded.name, source_name = excluded.source_name, type = excluded.type,
    state = excluded.state, since_version = excluded.since_version, deleted_version = excluded.deleted_version,
    doc = excluded.doc
"""


def store(connection: Connection, topic: TopicRow, before: LedgerState, after: LedgerState) -> None:
    """Store the difference between `before` and `after`."""
    known_entries, known_versions = set(before.entries), {each.version for each in before.versions}
    changed = [entry for entry in after.entries if entry not in known_entries]
    added = [each for each in after.versions if each.version not in known_versions]
    if changed or added:
        with connection.cursor() as cursor:
            cursor.executemany(_UPSERT, [(topic.id, *_columns(entry)) for entry in changed])
            cursor.executemany(
                "INSERT INTO schema_versions (topic_id, version, fingerprint, row_mapping) VALUES (%s, %s, %s, %s)",
                [(topic.id, each.version, each.fingerprint, each.mapping) for each in added],
            )
    if (after.last_id, after.returning) == (before.last_id, before.returning):
        return
    returning = after.returning
    connection.execute(
        "UPDATE topics SET last_field_id = %s, returning_version = %s, returning_since = %s, returning_asks = %s"
        " WHERE id = %s",
        (
            after.last_id,
            returning and returning.version,
            returning and returning.since,
            returning and returning.asks,
            topic.id,
        ),
    )


def _columns(entry: LedgerEntry) -> tuple[object, ...]:
    return (
        entry.root,
        stored_path(entry.path),
        entry.generation,
        entry.parent_id,
        entry.field_id,
        entry.name,
        entry.source_name,
        str(entry.type),
        entry.state.value,
        entry.since_version,
        entry.deleted_version,
        entry.doc,
    )


def _entry(row: tuple[Any, ...]) -> LedgerEntry:
    root, path, generation, parent_id, field_id, name, source_name, kind, state, since, deleted, doc = row
    return LedgerEntry(
        root=root,
        path=read_path(path),
        generation=generation,
        parent_id=parent_id,
        field_id=field_id,
        name=name,
        source_name=source_name,
        type=read_type(kind),
        state=ColumnState(state),
        since_version=since,
        deleted_version=deleted,
        doc=doc,
    )
