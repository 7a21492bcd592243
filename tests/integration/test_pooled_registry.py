"""A registry behind PgBouncer."""

from __future__ import annotations

import threading
from pathlib import Path

import psycopg
import pytest

from archiver.setup.server_checks import look_at_postgres
from catalog.errors import RegistryPooled
from catalog.registry import Registry, RegistryReader
from catalog.registry.postgres import Postgres
from tests.support.servers.pgbouncer import pgbouncer
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(("mode", "pool_size"), [("transaction", 1), ("transaction", 3), ("statement", 2)])
def test_every_start_and_check_refuse_shared_sessions(stack: Stack, tmp_path: Path, mode: str, pool_size: int) -> None:
    dsn = stack.database()
    Registry(dsn).close()
    with pgbouncer(dsn, tmp_path, pool_mode=mode, pool_size=pool_size) as pooled:
        for start in (Registry, RegistryReader, Postgres, lambda dsn: list(look_at_postgres(dsn))):
            with pytest.raises(RegistryPooled, match="choose `pool_mode = session` in PgBouncer") as caught:
                start(pooled)
            assert "rebuild" not in str(caught.value)
            assert not caught.value.retryable
        with psycopg.connect(pooled, autocommit=True) as connection:
            assert connection.execute("SHOW default_transaction_read_only").fetchone() == ("off",)
            assert connection.execute("SELECT current_setting('archiver.probe', true)").fetchone() in {("",), (None,)}


def test_a_busy_pooler_is_refused(stack: Stack, tmp_path: Path) -> None:
    stop = threading.Event()
    with pgbouncer(stack.database(), tmp_path, pool_mode="transaction", pool_size=5) as pooled:

        def work() -> None:
            with psycopg.connect(pooled, autocommit=True) as connection:
                while not stop.is_set():
                    connection.execute("SELECT pg_sleep(0.001)", prepare=False)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(20):
                with pytest.raises(RegistryPooled):
                    Postgres(pooled)
        finally:
            stop.set()
            for thread in threads:
                thread.join(30)


def test_sessions_that_are_kept_are_taken(stack: Stack, tmp_path: Path) -> None:
    with pgbouncer(stack.database(), tmp_path, pool_mode="session", pool_size=20) as pooled:
        with Registry(pooled) as registry:
            assert registry.topics.every() == ()
        (finding,) = look_at_postgres(pooled)
        assert "up to date" in finding.detail


def test_sessions_that_are_not_reset_are_refused(stack: Stack, tmp_path: Path) -> None:
    dsn = stack.database()
    Registry(dsn).close()
    with pgbouncer(dsn, tmp_path, pool_mode="session", pool_size=20, reset_query="") as pooled:
        for start in (Registry, RegistryReader, Postgres, lambda dsn: list(look_at_postgres(dsn))):
            with pytest.raises(RegistryPooled, match="Set `server_reset_query = DISCARD ALL` in PgBouncer"):
                start(pooled)
        with psycopg.connect(pooled, autocommit=True) as connection:
            assert connection.execute("SHOW default_transaction_read_only").fetchone() == ("off",)
