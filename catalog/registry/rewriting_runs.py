"""Runs that read files to replace them: they may upload records that were erased since.

Killed runs leave a row that is no longer renewed. Times are Postgres'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from catalog.model import TopicRow
from catalog.registry.known_files import UPLOAD_CLAIM_DAYS
from catalog.registry.postgres import Connection

LEAST_GRACE: Final = 3600.0
"""Seconds without a sign of life after which a run may be dead."""
_KEY: Final = "rewriting"
_NOW_MS: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritingRun:
    id: str
    begun_ms: int
    silent_seconds: float

    def is_alive(self, grace: float) -> bool:
        """Signs of life are minutes apart, so a `grace` below an hour says nothing."""
        return self.silent_seconds < max(grace, LEAST_GRACE)


def note(connection: Connection, topic: TopicRow, run_id: str) -> None:
    """A run's begin or sign of life. Removes runs that are long dead."""
    connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value)"  # noqa: S608 - no input
        f" VALUES (%s, %s, %s, jsonb_build_object('begun_ms', {_NOW_MS}))"
        " ON CONFLICT (topic_id, key, name) DO UPDATE SET updated = now()",
        (topic.id, _KEY, run_id),
    )
    connection.execute(
        "DELETE FROM metadata WHERE topic_id = %s AND key = %s AND updated < now() - make_interval(days => %s)",
        (topic.id, _KEY, UPLOAD_CLAIM_DAYS),
    )


def renew(connection: Connection, topic: TopicRow, run_id: str) -> bool:
    """Record a sign of life. False if the run was taken for dead, and its row deleted."""
    renewed = connection.execute(
        "UPDATE metadata SET updated = now() WHERE topic_id = %s AND key = %s AND name = %s", (topic.id, _KEY, run_id)
    )
    return bool(renewed.rowcount)


def may_register(connection: Connection, topic: TopicRow, run_id: str, *, begun_ms: int | None = None) -> bool:
    """Lock a run's row until the transaction ends. False if it was deleted. `begun_ms` dates the run back."""
    noted = connection.execute(
        "UPDATE metadata SET value = jsonb_build_object('begun_ms', least((value->>'begun_ms')::bigint, %s::bigint))"
        " WHERE topic_id = %s AND key = %s AND name = %s",
        (begun_ms, topic.id, _KEY, run_id),
    )
    return bool(noted.rowcount)


def forget(connection: Connection, topic: TopicRow, run_id: str) -> None:
    connection.execute("DELETE FROM metadata WHERE topic_id = %s AND key = %s AND name = %s", (topic.id, _KEY, run_id))


def load(connection: Connection, topic: TopicRow) -> tuple[RewritingRun, ...]:
    rows = connection.execute(
        "SELECT name, (value->>'begun_ms')::bigint, extract(epoch FROM clock_timestamp() - updated)::float8"
        " FROM metadata WHERE topic_id = %s AND key = %s ORDER BY 2, 1",
        (topic.id, _KEY),
    )
    return tuple(RewritingRun(id=name, begun_ms=begun, silent_seconds=silent) for name, begun, silent in rows)
