"""Orphans deleted under a Postgres lock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from archiver.errors import StorageUnavailable
from archiver.observer import ignore
from archiver.upkeep.orphans.removal import LOCK_TIMES, WORKERS, LockTimes, remove_orphans
from archiver.upkeep.orphans.report import Orphan, OrphanKind, TopicOrphans
from archiver.upkeep.orphans.search import OrphanSearch
from catalog.errors import RegistryUnreachable
from catalog.iceberg.deletion_gate import NeverLanded, Permit
from catalog.model import TopicRow, new_id
from catalog.registry import KnownFiles, Registry
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

ORPHANS = 50


class Deletions:
    def __init__(self) -> None:
        self.count = 0
        self.lock = threading.Lock()
        self.befall: Callable[[int], None] = lambda _: None


DELETIONS = Deletions()


class WatchedIO(PyArrowFileIO):
    def delete(self, location: Any) -> None:
        with DELETIONS.lock:
            number, DELETIONS.count = DELETIONS.count, DELETIONS.count + 1
        DELETIONS.befall(number)
        super().delete(location)


class Search:
    references = frozenset[str]()
    table = SimpleNamespace(
        iceberg=SimpleNamespace(io=SimpleNamespace(properties={"py-io-impl": f"{__name__}.WatchedIO"}), catalog=None)
    )

    def look(self) -> Any:
        return self.table

    is_whole = False

    def is_renewed(self, claims: object, name: str) -> bool:
        return False

    def is_promised(self, claims: object, orphan: Orphan) -> bool:
        return False

    def permit(self, orphan: Orphan) -> Permit:
        return NeverLanded((orphan.path,))


@pytest.fixture
def dsn(stack: Stack) -> str:
    return stack.database()


@pytest.fixture
def report(tmp_path: Path) -> TopicOrphans:
    DELETIONS.__init__()  # type: ignore[misc]
    orphans = []
    for _ in range(ORPHANS):
        path = tmp_path / f"{new_id().lower()}.parquet"
        path.write_bytes(b"orphan")
        orphans.append(
            Orphan(path=path.as_uri(), name=path.name, size=6, modified_ms=0, kind=OrphanKind.UNKNOWN, ulid=new_id())
        )
    return TopicOrphans(topic="orders", table="kafka.orders", orphans=tuple(orphans))


def remove(registry: Registry, report: TopicOrphans, times: LockTimes = LOCK_TIMES) -> None:
    topic = registry.topics.register(cluster_id="c", topic="orders", topic_id=None, table="kafka.orders")
    remove_orphans(cast("OrphanSearch", Search()), topic, report, registry=registry, observer=ignore, times=times)


def left(folder: Path) -> int:
    return len(list(folder.iterdir()))


def end_transactions(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database()"
            " AND state = 'idle in transaction'"
        )


def test_deletion_ends_with_the_lock(dsn: str, report: TopicOrphans, tmp_path: Path) -> None:
    def befall(number: int) -> None:
        if number == 0:
            end_transactions(dsn)

    DELETIONS.befall = befall
    with Registry(dsn) as registry, pytest.raises(RegistryUnreachable):
        remove(registry, report)
    assert left(tmp_path) >= ORPHANS - WORKERS, "deleted although others could stage them by now"
    assert len(report.deleted) == ORPHANS - left(tmp_path), "what was deleted is told"


def test_deletions_that_are_on_their_way_are_no_idle_transaction(
    dsn: str, report: TopicOrphans, tmp_path: Path
) -> None:
    DELETIONS.befall = lambda number: time.sleep(2.0) if number == 0 else None
    with Registry(dsn, answers_within=1.0) as registry:
        remove(registry, report, LockTimes(check_seconds=0.2))
    assert left(tmp_path) == 0
    assert len(report.deleted) == ORPHANS


def test_others_stage_between_slow_deletions(
    dsn: str, report: TopicOrphans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instants: list[float] = []
    nothing_staged = KnownFiles.nothing_staged

    def counted(claims: KnownFiles, topic: TopicRow, files: dict[str, str]) -> Any:
        instants.append(time.monotonic())
        return nothing_staged(claims, topic, files)

    monkeypatch.setattr(KnownFiles, "nothing_staged", counted)
    with Registry(dsn) as registry:
        remove(registry, report, LockTimes(hold_seconds=0.0))
    assert left(tmp_path) == 0
    assert len(instants) == -(-ORPHANS // WORKERS)


def test_what_fails_for_now_is_tried_again(dsn: str, report: TopicOrphans, tmp_path: Path) -> None:
    def befall(number: int) -> None:
        if number < 3:
            raise OSError(5, "AWS Error SLOW_DOWN during DeleteObject operation: please reduce your request rate")

    DELETIONS.befall = befall
    with Registry(dsn) as registry:
        remove(registry, report)
    assert left(tmp_path) == 0
    assert not report.failures


def test_what_fails_for_good_is_told(dsn: str, report: TopicOrphans, tmp_path: Path) -> None:
    def befall(_: int) -> None:
        raise OSError(5, "AWS Error ACCESS_DENIED during DeleteObject operation")

    DELETIONS.befall = befall
    with Registry(dsn) as registry, pytest.raises(Exception, match="delete") as caught:
        remove(registry, report)
    assert not isinstance(caught.value, StorageUnavailable)
    assert len(report.failures) == ORPHANS
    assert left(tmp_path) == ORPHANS
