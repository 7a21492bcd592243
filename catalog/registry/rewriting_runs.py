"""Runs that read files and will put others in their place: whoever erases records has to know of them.

Such a run may still upload what it read before. It is a row of the registry's `metadata` under the key `rewriting`, by
an id of its own, from its begin to its end. A killed run leaves its row, which isn't renewed any more. Times are
Postgres'. Functions take a connection inside a transaction. They are safe to call again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from catalog.model import TopicRow
from catalog.registry.known_files import UPLOAD_CLAIM_DAYS
from catalog.registry.postgres import Connection

_KEY: Final = "rewriting"
_NOW_MS: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritingRun:
    """A run: when it began (ms since 1970), and for how many seconds it hasn't said that it is alive."""

    id: str
    begun_ms: int
    silent_seconds: float


def note(connection: Connection, topic: TopicRow, run_id: str) -> None:
    """Note that a run begins, or that it is still alive. Rows of runs that died long ago are removed."""
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


def forget(connection: Connection, topic: TopicRow, run_id: str) -> None:
    """Note that a run is over."""
    connection.execute("DELETE FROM metadata WHERE topic_id = %s AND key = %s AND name = %s", (topic.id, _KEY, run_id))


def load(connection: Connection, topic: TopicRow) -> tuple[RewritingRun, ...]:
    """The runs that aren't over, as far as is known, the oldest first."""
    found = connection.execute(
        "SELECT name, (value->>'begun_ms')::bigint, extract(epoch FROM clock_timestamp() - updated)::float8"
        " FROM metadata WHERE topic_id = %s AND key = %s ORDER BY 2, 1",
        (topic.id, _KEY),
    )
    return tuple(RewritingRun(id=name, begun_ms=begun, silent_seconds=silent) for name, begun, silent in found)
