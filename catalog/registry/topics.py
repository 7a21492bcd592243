"""`topics`: one row per topic of a cluster, whose lock guards everything else about it."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import psycopg

from catalog.errors import RegistryBehind, RegistryError, TableTaken, TopicRecreated
from catalog.model import TopicRow
from catalog.registry import last_known
from catalog.registry.postgres import Connection

_COLUMNS = "id, cluster_id, topic, topic_id, table_name"


def register(connection: Connection, *, cluster_id: str, topic: str, topic_id: UUID | None, table: str) -> TopicRow:
    """A table name is fixed when the table was made.

    Raises TableTaken if topic or table belong elsewhere, TopicRecreated if Kafka's id differs.
    """
    connection.execute(
        "INSERT INTO topics (cluster_id, topic, topic_id, table_name) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
        (cluster_id, topic, topic_id, table),
    )
    row = find(connection, cluster_id=cluster_id, topic=topic)
    assert row is not None
    if row.table != table:
        row = _renamed(connection, row, table)
    _refuse_taken(connection, row)
    if None not in (row.topic_id, topic_id) and row.topic_id != topic_id:
        raise TopicRecreated(
            "the topic was deleted and created again; its offsets mean other records now. Give it another `table` and"
            " registry: the old archive stays as it is",
            topic=topic,
            archived_topic_id=str(row.topic_id),
            topic_id=str(topic_id),
        )
    if row.topic_id is None and topic_id is not None:
        connection.execute("UPDATE topics SET topic_id = %s WHERE id = %s", (topic_id, row.id))
        return TopicRow(id=row.id, cluster_id=cluster_id, topic=topic, topic_id=topic_id, table=table)
    return row


def find(connection: Connection, *, cluster_id: str, topic: str, table_uuid: UUID | None = None) -> TopicRow | None:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM topics WHERE cluster_id = %s AND topic = %s"  # noqa: S608 - column names, no input
        " AND coalesce(table_uuid = %s, true)",
        (cluster_id, topic, table_uuid),
    ).fetchone()
    return _row(row) if row else None


def every(connection: Connection) -> tuple[TopicRow, ...]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM topics ORDER BY cluster_id, topic")  # noqa: S608 - as above
    return tuple(_row(row) for row in rows)


def lock(connection: Connection, topic: TopicRow) -> None:
    if connection.execute("SELECT 1 FROM topics WHERE id = %s FOR UPDATE", (topic.id,)).fetchone() is None:
        raise unknown(topic)


def unknown(topic: TopicRow) -> RegistryError:
    return RegistryError(
        "the registry does not know the topic any more: was its database replaced? Start the job again",
        topic=topic.topic,
        cluster_id=topic.cluster_id,
    )


def check_table(connection: Connection, topic: TopicRow, table_uuid: UUID | None) -> None:
    """Bind the topic to its table on first sight.

    Raises RegistryBehind if the catalog has another table, or none (`table_uuid` is None), TableTaken if another
    topic's table has the name.
    """
    row = connection.execute("SELECT table_uuid FROM topics WHERE id = %s", (topic.id,)).fetchone()
    registered = row[0] if row else None
    if registered is None:
        _refuse_taken(connection, topic)
    if registered is None and table_uuid is not None:
        try:
            connection.execute("UPDATE topics SET table_uuid = %s WHERE id = %s", (table_uuid, topic.id))
        except psycopg.errors.UniqueViolation as error:
            raise _taken(topic, taken_by=None) from error
    elif registered is not None and registered != table_uuid:
        raise _other_table(topic, registered, table_uuid)


def check_identity(connection: Connection, topic: TopicRow, table_uuid: UUID | None) -> bool:
    """Whether the topic never had a table. Raises RegistryBehind if it has another one."""
    row = connection.execute(
        "SELECT table_uuid FROM topics WHERE cluster_id = %s AND topic = %s AND table_uuid IS NOT NULL",
        (topic.cluster_id, topic.topic),
    ).fetchone()
    if row is not None and row[0] != table_uuid:
        raise _other_table(topic, row[0], table_uuid)
    return row is None


def _other_table(topic: TopicRow, known: UUID, table_uuid: UUID | None) -> RegistryBehind:
    return RegistryBehind(
        "the table is not the one the registry knows: it was dropped, or the registry belongs to another catalog."
        " Restore the table; or run `archiver registry rebuild` into an empty database beside this one, and keep"
        " this one: only this one has the offsets of groups and the users of `archiver serve kafka`",
        topic=topic.topic,
        table=topic.table,
        known_uuid=str(known),
        table_uuid=str(table_uuid) if table_uuid else None,
    )


def owners(connection: Connection) -> dict[str, tuple[str, str]]:
    rows = connection.execute("SELECT table_name, cluster_id, topic FROM topics WHERE table_uuid IS NOT NULL")
    return {str(table): (str(cluster_id), str(topic)) for table, cluster_id, topic in rows}


def _renamed(connection: Connection, row: TopicRow, table: str) -> TopicRow:
    renamed = connection.execute(
        "UPDATE topics SET table_name = %s WHERE id = %s AND table_uuid IS NULL", (table, row.id)
    )
    if renamed.rowcount == 0:
        raise TableTaken(
            "the topic is archived in another table: set `table` back to it, or archive into a fresh registry",
            topic=row.topic,
            table=table,
            archived_in=row.table,
        )
    last_known.forget_table(connection, row)
    return replace(row, table=table)


def _refuse_taken(connection: Connection, topic: TopicRow) -> None:
    owner = connection.execute(
        "SELECT topic FROM topics WHERE table_name = %s AND table_uuid IS NOT NULL AND id <> %s",
        (topic.table, topic.id),
    ).fetchone()
    if owner is not None:
        raise _taken(topic, taken_by=str(owner[0]))


def _taken(topic: TopicRow, *, taken_by: str | None) -> TableTaken:
    return TableTaken(
        "the table is the archive of another topic: set `table` for this one in its section",
        topic=topic.topic,
        table=topic.table,
        taken_by=taken_by,
    )


def _row(found: tuple[object, ...]) -> TopicRow:
    number, cluster_id, topic, topic_id, table = found
    assert isinstance(number, int)
    assert topic_id is None or isinstance(topic_id, UUID)
    return TopicRow(id=number, cluster_id=str(cluster_id), topic=str(topic), topic_id=topic_id, table=str(table))
