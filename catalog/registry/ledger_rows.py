"""The field-id ledger: columns, schema versions, and the last id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

from catalog.errors import RegistryError
from catalog.model import TopicRow
from catalog.registry import topics
from catalog.registry.postgres import Connection
from schema_mapping.columns.ledger import (
    LAST_FIXED_ID,
    ColumnState,
    LedgerEntry,
    LedgerState,
    Returning,
    SchemaVersion,
)
from schema_mapping.columns.paths import read_path, stored_path
from schema_mapping.columns.types import read_type

if TYPE_CHECKING:
    from schema_mapping.row import RowMapping

_ColumnsAndVersions: TypeAlias = "tuple[tuple[LedgerEntry, ...], tuple[SchemaVersion, ...]]"

_LAST: Final = "last_field_id, returning_version, returning_since, returning_asks"
_WAITS: Final = "EXISTS (SELECT FROM schema_changes WHERE topic_id = topics.id AND approved_at IS NULL)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLedger:
    """`now` is the database's time. `has_waiting` if a schema change waits."""

    state: LedgerState
    table_uuid: UUID | None
    now: datetime
    has_waiting: bool = False


def load(connection: Connection, topic: TopicRow) -> LedgerState:
    content = _columns_and_versions(connection, [topic.id])[topic.id]
    # Last: without a lock, other processes may assign ids in between. Then the highest is too high, which does no harm.
    last = connection.execute(f"SELECT {_LAST} FROM topics WHERE id = %s", (topic.id,)).fetchone()  # noqa: S608 - no input
    return _state(content, last[0] if last else 0, _returning(*last[1:]) if last else None)


def read_locked(connection: Connection, topic: TopicRow) -> SeenLedger:
    """Raises RegistryError for unknown topics."""
    row = connection.execute(
        f"SELECT table_uuid, clock_timestamp(), {_LAST} FROM topics WHERE id = %s FOR UPDATE",  # noqa: S608 - no input
        (topic.id,),
    ).fetchone()
    if row is None:
        raise topics.unknown(topic)
    table_uuid, now, last_id, *returning = row
    columns = _columns_and_versions(connection, [topic.id])[topic.id]  # only now: the lock may have waited
    return SeenLedger(state=_state(columns, last_id, _returning(*returning)), table_uuid=table_uuid, now=now)


def read_together(connection: Connection, rows: Sequence[TopicRow]) -> dict[int, SeenLedger]:
    """By topic id, without unknown topics. Consistent if called first in a transaction."""
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    fetched = connection.execute(
        f"SELECT id, table_uuid, clock_timestamp(), {_WAITS}, {_LAST} FROM topics WHERE id = ANY(%s)",  # noqa: S608 - no input
        ([row.id for row in rows],),
    ).fetchall()
    columns = _columns_and_versions(connection, [row[0] for row in fetched])
    return {
        topic_id: SeenLedger(
            state=_state(columns[topic_id], last_id, _returning(*returning)),
            table_uuid=table_uuid,
            now=now,
            has_waiting=has_waiting,
        )
        for topic_id, table_uuid, now, has_waiting, last_id, *returning in fetched
    }


def _columns_and_versions(connection: Connection, topic_ids: Sequence[int]) -> dict[int, _ColumnsAndVersions]:
    ids = list(topic_ids)
    content: dict[int, tuple[list[LedgerEntry], list[SchemaVersion]]] = {number: ([], []) for number in ids}
    for topic_id, *entry in connection.execute(
        "SELECT topic_id, root, path, generation, parent_id, field_id, name, source_name, type, state, since_version,"
        " deleted_version, doc FROM field_ids WHERE topic_id = ANY(%s) ORDER BY topic_id, field_id",
        (ids,),
    ):
        content[topic_id][0].append(entry_of(entry))
    for topic_id, version, fingerprint, mapping in connection.execute(
        "SELECT topic_id, version, fingerprint, row_mapping::text FROM schema_versions WHERE topic_id = ANY(%s)"
        " ORDER BY topic_id, version",
        (ids,),
    ):
        content[topic_id][1].append(SchemaVersion(version=version, fingerprint=fingerprint, mapping=mapping))
    return {number: (tuple(entries), tuple(versions)) for number, (entries, versions) in content.items()}


def _state(found: _ColumnsAndVersions, last_id: int, returning: Returning | None) -> LedgerState:
    entries, versions = found
    return LedgerState(entries=entries, versions=versions, last_id=max(LAST_FIXED_ID, last_id), returning=returning)


def _returning(version: int | None, since: datetime | None, asks: int | None) -> Returning | None:
    if version is None or since is None or asks is None:
        return None
    return Returning(version=version, since=since, asks=asks)


def row_mapping(connection: Connection, topic: TopicRow, version: int) -> RowMapping:
    """Raises RegistryError if the version is unknown."""
    from schema_mapping.row import row_mapping_from_text

    row = connection.execute(
        "SELECT row_mapping::text FROM schema_versions WHERE topic_id = %s AND version = %s", (topic.id, version)
    ).fetchone()
    if row is None:
        raise RegistryError(
            "the registry does not know a schema version that rows were written with. Run `archiver registry rebuild`,"
            " or restore a newer backup of its database",
            topic=topic.topic,
            schema_version=version,
        )
    return row_mapping_from_text(row[0])


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
    known_entries, known_versions = set(before.entries), {version.version for version in before.versions}
    changed = [entry for entry in after.entries if entry not in known_entries]
    added = [version for version in after.versions if version.version not in known_versions]
    if changed or added:
        with connection.cursor() as cursor:
            cursor.executemany(_UPSERT, [(topic.id, *columns_of(entry)) for entry in changed])
            cursor.executemany(
                "INSERT INTO schema_versions (topic_id, version, fingerprint, row_mapping) VALUES (%s, %s, %s, %s)",
                [(topic.id, schema.version, schema.fingerprint, schema.mapping) for schema in added],
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


def columns_of(entry: LedgerEntry) -> tuple[object, ...]:
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


def entry_of(row: Sequence[Any]) -> LedgerEntry:
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
