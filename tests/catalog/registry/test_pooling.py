"""Transaction poolers are detected. The integration tests have PgBouncer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Self, cast

import psycopg
import pytest

from catalog.errors import RegistryError, RegistryPooled
from catalog.registry.pooling import is_behind_pooler, mark, refuse_shared_sessions, refuse_unclean_sessions
from catalog.registry.postgres_errors import registry_errors


class Session:
    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.setting = ""


class Pooler:
    def __init__(self, mode: str, *, sessions: int, round_robin: bool = False) -> None:
        self.mode = mode
        self.free = [Session(pid) for pid in range(1, sessions + 1)]
        self.round_robin = round_robin

    def take(self) -> Session:
        return self.free.pop(0 if self.round_robin else -1)


class Client:
    def __init__(self, pooler: Pooler) -> None:
        self.pooler = pooler
        self.session = pooler.take() if pooler.mode == "session" else None
        self.info = SimpleNamespace(backend_pid=self.session.pid if self.session else 99)

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        if self.pooler.mode == "statement":
            raise psycopg.errors.ProtocolViolation("transaction blocks not allowed in statement pooling mode")
        if self.session is not None:
            yield self
            return
        self.session = self.pooler.take()
        try:
            yield self
        finally:
            self.pooler.free.append(self.session)
            self.session = None

    def execute(self, statement: str, values: tuple[str, ...] = ()) -> Any:
        session = self.session or self.pooler.take()
        if "set_config" in statement:
            session.setting = values[1] if len(values) > 1 else ""
        if self.session is None:
            self.pooler.free.append(session)
        row = (session.setting,) if "current_setting" in statement else (session.pid,)
        return SimpleNamespace(fetchone=lambda: row)


def refuse(pooler: Pooler) -> None:
    refuse_shared_sessions(cast("Any", Client(pooler)), cast("Any", Client(pooler)), {"host": "db"})


@pytest.mark.parametrize("mode", ["transaction", "statement"])
@pytest.mark.parametrize("sessions", [1, 2, 5])
@pytest.mark.parametrize("round_robin", [False, True])
def test_sessions_given_away_are_refused(mode: str, sessions: int, round_robin: bool) -> None:
    pooler = Pooler(mode, sessions=sessions, round_robin=round_robin)
    with pytest.raises(RegistryPooled, match=r"choose `pool_mode = session` in PgBouncer.*host='db'"):
        refuse(pooler)
    if not round_robin:
        assert [session.setting for session in pooler.free] == [""] * sessions


def test_sessions_that_clients_keep_are_taken() -> None:
    pooler = Pooler("session", sessions=2)
    refuse(pooler)
    assert not is_behind_pooler(cast("Any", Client(Pooler("session", sessions=1))))
    assert is_behind_pooler(cast("Any", Client(Pooler("transaction", sessions=1))))


@pytest.mark.parametrize("resets", [True, False])
def test_sessions_that_are_not_reset_are_refused(resets: bool) -> None:
    pooler = Pooler("session", sessions=1)
    first = Client(pooler)
    mark(cast("Any", first), "token")
    assert first.session is not None
    if resets:
        first.session.setting = ""
    pooler.free.append(first.session)
    later = Client(pooler)
    if resets:
        refuse_unclean_sessions(cast("Any", later), "token", {"host": "db"})
    else:
        with pytest.raises(RegistryPooled, match=r"`server_reset_query = DISCARD ALL` in PgBouncer.*host='db'"):
            refuse_unclean_sessions(cast("Any", later), "token", {"host": "db"})
    assert first.session.setting == ""


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (psycopg.errors.InvalidSqlStatementName, RegistryPooled, "pool_mode = session"),
        (psycopg.errors.DuplicatePreparedStatement, RegistryPooled, "pool_mode = session"),
        (psycopg.errors.UndefinedTable, RegistryError, "search_path"),
        (psycopg.errors.InternalError_, RegistryError, "took back its transaction"),
        (psycopg.errors.UniqueViolation, RegistryError, "took back its transaction"),
    ],
)
def test_no_rebuild_is_advised_unless_data_is_damaged(
    error: type[psycopg.Error], kind: type[RegistryError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught, registry_errors({"host": "db"}):
        raise error("something odd")
    assert "rebuild" not in str(caught.value)
    with pytest.raises(RegistryError, match="rebuild"), registry_errors({"host": "db"}):
        raise psycopg.errors.DataCorrupted("invalid page in block 7")
