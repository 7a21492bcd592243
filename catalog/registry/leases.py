"""Leases on topics: advisory locks on one connection per run.

They save duplicate work; correctness never depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from catalog.errors import RegistryError
from catalog.model import TopicRow
from catalog.registry.postgres import Connection, Postgres

_CLASS = 0x6C656173


class Leases:
    def __init__(self, postgres: Postgres, connection: Connection) -> None:
        self._postgres = postgres
        self._connection = connection
        self._held: set[int] = set()

    def take(self, topics: Sequence[TopicRow]) -> tuple[TopicRow, ...]:
        """Return topics that another process holds. Raises RegistryError if the server has no room for locks."""
        topic_ids = [topic.id for topic in topics if topic.id not in self._held]
        if topic_ids:
            self._held.update(self._try(topic_ids))
        return tuple(topic for topic in topics if topic.id not in self._held)

    def are_held(self) -> bool:
        """The leases are lost with the connection."""
        try:
            self._connection.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True

    def _try(self, wanted: list[int]) -> list[int]:
        with self._postgres.in_our_words():
            try:
                rows = self._connection.execute(
                    "SELECT id FROM unnest(%s::integer[]) AS id WHERE pg_try_advisory_lock(%s, id)", (wanted, _CLASS)
                )
                return [number for (number,) in rows]
            except psycopg.errors.OutOfMemory as error:
                msg = (
                    "Postgres has no room for a lock for each topic: raise its max_locks_per_transaction, or archive"
                    " the topics in several jobs"
                )
                raise RegistryError(msg, topics=len(wanted)) from error
