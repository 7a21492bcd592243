"""Metadata beside lost sessions, lost journals and rebuilds."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from archiver.config import Config, load_config
from archiver.storage.objects import ObjectStore
from archiver.upkeep.archived_topic import known_topics
from archiver.upkeep.metadata import MetadataKeeper, NamedTargets
from archiver.upkeep.rebuild.job import Rebuild
from catalog.errors import RegistryError
from catalog.registry import Registry
from tests.support.archive.job_runs import archive_once
from tests.support.archive.metadata_entries import WAITS, entry_of
from tests.support.archive.wrong_schema import WRONG, archived_wrongly, produce
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack
from tests.support.timing.eventually import eventually

pytestmark = pytest.mark.integration

ENDED = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND state = 'idle in transaction' AND query = 'SELECT 1'"
)
"""Ends sessions between the objects that a `set` writes."""


@pytest.fixture
def topic(stack: Stack) -> str:
    return stack.topic()


@pytest.fixture
def config(stack: Stack, topic: str) -> Config:
    path = stack.config({topic: {}})
    stack.produce(topic, {"key": b"a", "value": b"1", "timestamp": 1})
    archive_once(path)
    return load_config(path)


@pytest.fixture
def admin(config: Config) -> Iterator[psycopg.Connection]:
    with closing(psycopg.connect(config.registry.dsn, autocommit=True)) as connection:
        yield connection


def lose_journal(config: Config) -> None:
    store = ObjectStore.of(config.catalog)
    for listed in store.list(str(config.archive.journal)):
        store.file_io(listed.path).delete(listed.path)


def journaled(config: Config) -> int:
    return len(ObjectStore.of(config.catalog).list(f"{config.archive.journal}/metadata"))


def test_a_set_whose_session_ends_leaves_no_object(config: Config, topic: str, admin: psycopg.Connection) -> None:
    keeper, keys = MetadataKeeper(config), tuple(b"k%d" % number for number in range(500))
    with ThreadPoolExecutor(1) as beside:
        running = beside.submit(keeper.set, topic, NamedTargets(keys=keys), {"case": "1"})
        eventually(lambda: running.done() or admin.execute(ENDED).fetchall(), every=0)
        with pytest.raises(RegistryError):
            running.result()
    assert journaled(config) == 0
    assert keeper.listed(topic, NamedTargets(), with_history=True) == ()


def test_a_lost_journal_leaves_metadata_in_force(config: Config, topic: str) -> None:
    MetadataKeeper(config).set(topic, NamedTargets(keys=(b"a",)), {"case": "1"})
    lose_journal(config)
    Rebuild(config, [topic]).run()
    assert [entry.value for entry in MetadataKeeper(config).listed(topic, NamedTargets())] == ["1"]


def test_a_version_after_a_lost_journal_takes_no_metadata(stack: Stack, tmp_path: Path) -> None:
    """The journal then has the newest version, and no older one."""
    path, topic, proto = archived_wrongly(stack, tmp_path)
    config = load_config(path)
    MetadataKeeper(config).set(topic, NamedTargets(keys=(b"a",)), {"case": "1"})
    lose_journal(config)
    proto.write_text(WRONG.replace("int32 id = 1;", "int32 id = 1; string note = 9;"))
    produce(stack, topic, 2)
    archive_once(path, topic, engine=InlineEngine())
    (rebuilt,) = Rebuild(config, [topic]).run()
    assert rebuilt.from_journal
    assert [entry.value for entry in MetadataKeeper(config).listed(topic, NamedTargets())] == ["1"]


def test_an_erasure_forgets_after_a_rebuild_that_restores(
    config: Config, topic: str, admin: psycopg.Connection
) -> None:
    erased = entry_of(b"a", "case", "1")
    with Registry(config.registry.dsn) as registry, Registry(config.registry.dsn) as other:
        (row,) = known_topics(config, (topic,), registry)
        other.metadata.doom(row, [erased], None)
        with ThreadPoolExecutor(1) as beside:
            forgets: list[Future[None]] = []

            def present() -> frozenset[str]:
                forgets.append(beside.submit(other.metadata.forget, row, [erased.id]))
                eventually(lambda: forgets[0].done() or admin.execute(WAITS).fetchall())
                return frozenset({erased.id})

            registry.metadata.restore(row, [erased], "file:///none", present)
            forgets[0].result()
        assert registry.metadata.ids(row) == frozenset()


def test_entries_of_killed_runs_leave_room(config: Config, topic: str, admin: psycopg.Connection) -> None:
    with Registry(config.registry.dsn) as registry:
        (row,) = known_topics(config, (topic,), registry)
        registry.metadata.add(row, [entry_of(b"k", "case", "1", sequence=number) for number in range(9_999)], None)
        more = [entry_of(b"a", "case", "1", seconds=1), entry_of(b"b", "case", "1", seconds=2)]
        with pytest.raises(RegistryError, match="too much metadata"):
            registry.metadata.add(row, more, None)
        admin.execute("UPDATE record_metadata SET set_at = set_at - interval '2 hours'")
        registry.metadata.add(row, more, None)
