"""Schema changes that wait for approval, and approvals. A rebuilt registry has none. Idempotent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from psycopg.types.json import Jsonb

from catalog.model import TopicRow
from catalog.registry.postgres import Connection

if TYPE_CHECKING:
    from schema_mapping.columns.evolution import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChange:
    """`changes` break queries. Without `approved_at` it waits."""

    base_version: int
    fingerprint: str
    changes: tuple[Change, ...]
    waits_since: datetime
    approved_at: datetime | None = None
    approved_by: str | None = None

    @property
    def is_approved(self) -> bool:
        return self.approved_at is not None


def of_topics(connection: Connection, topics: Sequence[TopicRow]) -> dict[int, tuple[StoredChange, ...]]:
    from schema_mapping.columns.evolution import Change

    stored: defaultdict[int, list[StoredChange]] = defaultdict(list)
    rows = connection.execute(
        "SELECT topic_id, base_version, fingerprint, changes, waits_since, approved_at, approved_by FROM schema_changes"
        " WHERE topic_id = ANY(%s) ORDER BY topic_id, waits_since, fingerprint",
        ([topic.id for topic in topics],),
    )
    for topic_id, base_version, fingerprint, changes, waits_since, approved_at, approved_by in rows:
        stored[topic_id].append(
            StoredChange(
                base_version=base_version,
                fingerprint=fingerprint,
                changes=tuple(map(Change.from_json, changes)),
                waits_since=waits_since,
                approved_at=approved_at,
                approved_by=approved_by,
            )
        )
    return {topic.id: tuple(stored[topic.id]) for topic in topics}


def note_waiting(
    connection: Connection, topic: TopicRow, *, base_version: int, fingerprint: str, changes: Iterable[Change]
) -> None:
    """Replaces earlier waiting changes; approvals stay."""
    connection.execute(
        "DELETE FROM schema_changes WHERE topic_id = %s AND approved_at IS NULL"
        " AND (base_version, fingerprint) <> (%s, %s)",
        (topic.id, base_version, fingerprint),
    )
    connection.execute(
        "INSERT INTO schema_changes (topic_id, base_version, fingerprint, changes) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT DO NOTHING",
        (topic.id, base_version, fingerprint, Jsonb([change.to_json() for change in changes])),
    )


def forget_waiting(connection: Connection, topic: TopicRow) -> None:
    connection.execute("DELETE FROM schema_changes WHERE topic_id = %s AND approved_at IS NULL", (topic.id,))


def approve(
    connection: Connection,
    topic: TopicRow,
    *,
    base_version: int,
    fingerprint: str,
    changes: Iterable[Change],
    by: str,
) -> None:
    connection.execute(
        "INSERT INTO schema_changes (topic_id, base_version, fingerprint, changes, approved_at, approved_by)"
        " VALUES (%s, %s, %s, %s, now(), %s) ON CONFLICT (topic_id, base_version, fingerprint) DO UPDATE"
        " SET approved_at = now(), approved_by = excluded.approved_by WHERE schema_changes.approved_at IS NULL",
        (topic.id, base_version, fingerprint, Jsonb([change.to_json() for change in changes]), by),
    )
