"""Connections to the registry's database, migrations, and errors (docs/troubleshooting.md).

Errors name host, port, database and user, never the password.
"""

from __future__ import annotations

import math
import re
import select
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from secrets import token_hex
from typing import Any, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolTimeout

from catalog.errors import (
    RegistryDenied,
    RegistryError,
    RegistryMisnamed,
    RegistryNotMigrated,
    RegistryOutdated,
    RegistryUnreachable,
)
from catalog.registry.pooling import is_behind_pooler, mark, refuse_shared_sessions, refuse_unclean_sessions
from catalog.registry.postgres_errors import registry_errors, said

Connection = psycopg.Connection[TupleRow]

CONNECT_SECONDS = 10
LOCK_SECONDS = 60
"""How long a statement waits for a lock. The server ends an open transaction that is idle for as long."""

TRUSTED_SECONDS = 1.0
"""How long after its last use a connection is taken for whole without asking the server, unless something came in."""

_TABLE = re.compile(r"^CREATE TABLE (\w+)", re.MULTILINE)
_CLOSED = """
    SELECT name FROM unnest(%s::text[]) AS name
    WHERE NOT (
        has_table_privilege(to_regclass(name), 'SELECT') AND has_table_privilege(to_regclass(name), 'INSERT')
        AND has_table_privilege(to_regclass(name), 'UPDATE') AND has_table_privilege(to_regclass(name), 'DELETE')
    )
"""
_FORM = "the registry's dsn cannot be read: write postgresql://user@host:port/database or host=… dbname=…"
_MIGRATION_LOCK = 0x61726368


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    server: str
    missing: tuple[str, ...]


class _Pooled(psycopg.Connection[TupleRow]):
    used = -math.inf


class Postgres:
    """A database with a small pool, opened on demand. Thread-safe, not fork-safe."""

    def __init__(
        self, dsn: str, *, connections: int = 4, may_write: bool = True, answers_within: float | None = None
    ) -> None:
        """Without `may_write` all transactions are read-only.

        With `answers_within` calls fail after these seconds without an answer, even on a silent network, and readers'
        statements are ended.
        """
        self._conninfo, self._where = _read_dsn(dsn, answers_within)
        self._configure = partial(configure_session, may_write=may_write, answers_within=answers_within)
        with self.in_our_words():
            self._check_pooler()
            self._connect().close()
        self._pool = ConnectionPool(
            self._conninfo,
            connection_class=_Pooled,
            min_size=0,
            max_size=connections,
            timeout=answers_within or CONNECT_SECONDS,
            kwargs={"autocommit": True},
            configure=self._configure,
            check=_check,
            open=True,
        )

    @classmethod
    def migrated(cls, dsn: str, *, connections: int = 4, answers_within: float | None = None) -> Self:
        """Raises RegistryOutdated if the database is newer."""
        database = cls(dsn, connections=connections, answers_within=answers_within)
        with database._closed_on_error():
            database.migrate()
        return database

    @classmethod
    def read_only(cls, dsn: str, *, connections: int = 4, answers_within: float | None = None) -> Self:
        """Raises RegistryNotMigrated or RegistryOutdated for other versions."""
        database = cls(dsn, connections=connections, may_write=False, answers_within=answers_within)
        with database._closed_on_error():
            database.check_migrated()
        return database

    def close(self) -> None:
        self._pool.close()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self.in_our_words(), self._connection() as connection, connection.transaction():
            yield connection

    @contextmanager
    def statements(self) -> Iterator[Connection]:
        """Outside transactions, without locks between statements."""
        with self.in_our_words(), self._connection() as connection:
            yield connection

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """A connection outside the pool, exempt from `idle_session_timeout`."""
        connection = self._connect()
        try:
            with self.in_our_words():
                connection.execute(
                    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'"
                )
            yield connection
        finally:
            connection.close()

    def migrate(self) -> tuple[str, ...]:
        """Returns the names. One process at a time applies them."""
        with self.transaction() as connection:
            return self._apply_missing(connection)

    def rehearse(self) -> Rehearsal:
        """Apply missing migrations, check write privileges, and roll back. Raises RegistryError like a start."""
        with self.in_our_words(), self._connection() as connection, connection.transaction(force_rollback=True):
            missing = self._apply_missing(connection)
            tables = {name for _, statements in migrations_by_number().values() for name in _TABLE.findall(statements)}
            closed = connection.execute(_CLOSED, (sorted(tables),)).fetchall()
            server = str(connection.info.server_version // 10_000)
        if closed:
            msg = "the registry's user may not SELECT, INSERT, UPDATE and DELETE in all its tables: grant it that"
            raise RegistryDenied(msg, tables=[name for (name,) in closed], **self._where)
        return Rehearsal(server=server, missing=missing)

    def _apply_missing(self, connection: Connection) -> tuple[str, ...]:
        migrations = migrations_by_number()
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
        if not _has_migrations(connection):
            connection.execute(
                "CREATE TABLE migrations (number integer PRIMARY KEY, name text NOT NULL,"
                " applied_at timestamptz NOT NULL DEFAULT now())"
            )
        done = _applied(connection)
        self._check_not_newer(done, migrations)
        missing = {number: migrations[number] for number in sorted(migrations.keys() - done)}
        for number, (name, statements) in missing.items():
            connection.execute(statements.encode())
            connection.execute("INSERT INTO migrations (number, name) VALUES (%s, %s)", (number, name))
        return tuple(name for name, _ in missing.values())

    def check_migrated(self) -> None:
        """Raise RegistryNotMigrated or RegistryOutdated unless versions agree."""
        migrations = migrations_by_number()
        with self.transaction() as connection:
            if not _has_migrations(connection):
                raise RegistryNotMigrated(
                    "there is no registry in this database, or its user may not see it: correct the registry's dsn,"
                    " grant the user USAGE on the schema and SELECT on its tables, or archive something first",
                    **self._where,
                )
            done = _applied(connection)
        self._check_not_newer(done, migrations)
        if missing := sorted(migrations.keys() - done):
            msg = (
                f"the registry is older than this archiver (it lacks {migrations[missing[0]][0]}), and reading changes"
                " nothing: run `archiver archive` of this version, which brings it up to date, or read with the version"
                " that archives"
            )
            raise RegistryNotMigrated(msg, **self._where)

    def in_our_words(self) -> AbstractContextManager[None]:
        return registry_errors(self._where)

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _check_not_newer(self, done: set[int], known: Collection[int]) -> None:
        if newer := sorted(done.difference(known)):
            msg = f"the registry was migrated by a newer archiver (up to {newer[-1]:04}): upgrade this one"
            raise RegistryOutdated(msg, **self._where)

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        try:
            connection = self._pool.getconn()
        except PoolTimeout:
            self._connect().close()  # raises the reason; the pool only says that it timed out
            raise
        try:
            yield connection
        finally:
            connection.used = time.monotonic()
            self._pool.putconn(connection)

    def _check_pooler(self) -> None:
        """Raise RegistryPooled before settings could reach another client's session."""
        with closing(self._connect_bare()) as first:
            if not is_behind_pooler(first):
                return
            token = token_hex()
            with closing(self._connect_bare()) as second:
                refuse_shared_sessions(first, second, self._where)
                mark(second, token)
            mark(first, token)
        with closing(self._connect_bare()) as later:
            refuse_unclean_sessions(later, token, self._where)

    def _connect(self) -> Connection:
        connection = self._connect_bare()
        self._configure(connection)
        return connection

    def _connect_bare(self) -> Connection:
        try:
            return psycopg.connect(self._conninfo, autocommit=True)
        except psycopg.OperationalError as error:
            raise _why_no_connection(error, self._where) from error


def check_dsn(dsn: str) -> None:
    """Raise RegistryMisnamed if invalid. Makes no connection."""
    _read_dsn(dsn)


def configure_session(connection: Connection, *, may_write: bool, answers_within: float | None = None) -> None:
    milliseconds = str(int((answers_within or LOCK_SECONDS) * 1000))
    settings = {"lock_timeout": milliseconds, "idle_in_transaction_session_timeout": milliseconds}
    if not may_write:
        settings["default_transaction_read_only"] = "on"
        if answers_within is not None:
            settings["statement_timeout"] = milliseconds
    for name, value in settings.items():
        connection.execute("SELECT set_config(%s, %s, false)", (name, value))


def _check(connection: _Pooled) -> None:
    """Raise psycopg's exceptions for a broken connection. A silent network shows only at the next statement."""
    if time.monotonic() - connection.used < TRUSTED_SECONDS:
        coming = select.poll()
        coming.register(connection.fileno(), select.POLLIN)
        if not coming.poll(0):
            return
    ConnectionPool.check_connection(connection)


def _read_dsn(dsn: str, answers_within: float | None = None) -> tuple[str, dict[str, Any]]:
    try:
        given = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise RegistryMisnamed(_FORM) from None  # the cause would print the dsn with its password
    for port in str(given.get("port") or "5432").split(","):
        if not (port.isdecimal() and 0 < int(port) < 1 << 16):
            raise RegistryMisnamed(f"{_FORM}; its port is no number of a port", port=port)
    defaults: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS, "application_name": "archiver"}
    if answers_within is not None:
        seconds = max(2, math.ceil(answers_within))  # libpq takes no less
        defaults |= {"connect_timeout": seconds, "tcp_user_timeout": int(answers_within * 1000)}
        defaults |= {"keepalives_idle": seconds, "keepalives_interval": 1, "keepalives_count": 2}
    where = {
        "host": given.get("host") or given.get("hostaddr") or "local socket",
        "port": given.get("port", "5432"),
        "database": given.get("dbname") or given.get("user"),
        "user": given.get("user"),
    }
    return make_conninfo("", **(defaults | given)), where


def _why_no_connection(error: psycopg.OperationalError, where: dict[str, Any]) -> RegistryError:
    text = said(error)
    if "password authentication failed" in text or "no password supplied" in text:
        return RegistryDenied("Postgres refused the user or password of the registry's dsn", **where)
    if "does not exist" in text:
        return RegistryDenied(f"Postgres answers, but {text}: create it, or correct the registry's dsn", **where)
    if "no pg_hba.conf entry" in text or "permission denied" in text:
        return RegistryDenied(f"Postgres refused the connection: {text}", **where)
    return RegistryUnreachable(f"Postgres does not answer: {text}. Is it running, and is the dsn right?", **where)


def migrations_by_number() -> dict[int, tuple[str, str]]:
    entries = (entry for entry in files("catalog.registry.migrations").iterdir() if entry.name.endswith(".sql"))
    return {int(entry.name[:4]): (entry.name.removesuffix(".sql"), entry.read_text("utf-8")) for entry in entries}


def _has_migrations(connection: Connection) -> bool:
    return connection.execute("SELECT to_regclass('migrations') IS NOT NULL").fetchone() == (True,)


def _applied(connection: Connection) -> set[int]:
    return {number for (number,) in connection.execute("SELECT number FROM migrations")}
