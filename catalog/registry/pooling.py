"""Finds a connection pooler that gives away the server's sessions between transactions.

The archiver keeps leases (advisory locks) and settings in its sessions. Behind PgBouncer with `pool_mode = transaction`
or `statement` they would end in the sessions of other clients.
"""

from __future__ import annotations

from secrets import token_hex
from typing import Final

import psycopg
from psycopg.rows import TupleRow

from catalog.errors import RegistryPooled

_ROUNDS: Final = 4
_PROBE: Final = "archiver.probe"

POOLED: Final = (
    "a connection pooler gives the registry's sessions to other clients between transactions, and the archiver keeps"
    " locks and settings in its sessions: choose `pool_mode = session` in PgBouncer for this database or user, or give"
    " the address of Postgres itself in the registry's dsn"
)

POOLER_ERRORS: Final = (psycopg.errors.InvalidSqlStatementName, psycopg.errors.DuplicatePreparedStatement)
"""A prepared statement belongs to another session than the one that made it."""


def is_behind_pooler(connection: psycopg.Connection[TupleRow]) -> bool:
    """Return whether the process that greeted the client is not the server's. Poolers of any mode greet themselves."""
    return connection.execute("SELECT pg_backend_pid()").fetchone() != (connection.info.backend_pid,)


def refuse_shared_sessions(
    first: psycopg.Connection[TupleRow], second: psycopg.Connection[TupleRow], where: dict[str, object]
) -> None:
    """Raise RegistryPooled if the pooler doesn't keep a session for each of its clients.

    Both connections must be in autocommit mode. Nothing is left in the sessions but an empty custom setting.
    """
    first.prepare_threshold = second.prepare_threshold = None
    try:
        is_shared = _are_shared(first, second)
    except psycopg.Error as error:
        if "statement pooling mode" not in str(error):
            raise
        is_shared = True
    if is_shared:
        raise RegistryPooled(POOLED, **where)


def _are_shared(first: psycopg.Connection[TupleRow], second: psycopg.Connection[TupleRow]) -> bool:
    """While the second connection is in a transaction, the first one must keep its session, and find no other's."""
    token = token_hex()
    marked = first.execute("SELECT pg_backend_pid() FROM set_config(%s, %s, false)", (_PROBE, token)).fetchone()
    try:
        for _ in range(_ROUNDS):
            with second.transaction():
                if second.execute("SELECT current_setting(%s, true)", (_PROBE,)).fetchone() == (token,):
                    second.execute("SELECT set_config(%s, '', false)", (_PROBE,))
                    return True
                if first.execute("SELECT pg_backend_pid()").fetchone() != marked:
                    return True
    finally:
        first.execute("SELECT set_config(%s, '', false)", (_PROBE,))
    return False
