"""Detect poolers that share server sessions, which have leases and settings.

PgBouncer must not use `pool_mode = transaction` or `statement`, nor leave out `server_reset_query`.
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

UNCLEAN: Final = (
    "a connection pooler hands a session of the registry to the next client as the last one left it, with its locks and"
    " settings: a killed archiver's topics would stay busy. Set `server_reset_query = DISCARD ALL` in PgBouncer, or"
    " give the address of Postgres itself in the registry's dsn"
)

POOLER_ERRORS: Final = (psycopg.errors.InvalidSqlStatementName, psycopg.errors.DuplicatePreparedStatement)
"""A prepared statement belongs to another session than the one that made it."""


def is_behind_pooler(connection: psycopg.Connection[TupleRow]) -> bool:
    """As with any pooler, the greeting process isn't the server's."""
    return connection.execute("SELECT pg_backend_pid()").fetchone() != (connection.info.backend_pid,)


def refuse_shared_sessions(
    first: psycopg.Connection[TupleRow], second: psycopg.Connection[TupleRow], where: dict[str, object]
) -> None:
    """Raise RegistryPooled if clients share sessions. Connections must be in autocommit mode."""
    first.prepare_threshold = second.prepare_threshold = None
    try:
        is_shared = _are_shared(first, second)
    except psycopg.Error as error:
        if "statement pooling mode" not in str(error):
            raise
        is_shared = True
    if is_shared:
        raise RegistryPooled(POOLED, **where)


def mark(connection: psycopg.Connection[TupleRow], token: str) -> None:
    """Leave a setting that a pooler should reset before it gives the session to another client."""
    connection.execute("SELECT set_config(%s, %s, false)", (_PROBE, token))


def refuse_unclean_sessions(later: psycopg.Connection[TupleRow], token: str, where: dict[str, object]) -> None:
    """Raise RegistryPooled if a new client's session has an earlier client's mark."""
    later.prepare_threshold = None
    if later.execute("SELECT current_setting(%s, true)", (_PROBE,)).fetchone() == (token,):
        mark(later, "")
        raise RegistryPooled(UNCLEAN, **where)


def _are_shared(first: psycopg.Connection[TupleRow], second: psycopg.Connection[TupleRow]) -> bool:
    """While the second is in a transaction, the first must keep a separate session."""
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
