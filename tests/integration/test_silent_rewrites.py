"""Killed rewrites that can't land any more."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from archiver.config import load_config
from archiver.errors import InjectedFault
from archiver.fault_points import FaultPoint, pass_point
from archiver.rewrite import in_place
from archiver.upkeep.orphans.job import Orphans
from archiver.upkeep.retire.job import Expire
from catalog.errors import RewriteRefused
from catalog.iceberg.rewrite_commit import Rewritten
from tests.support.archive.job_runs import archive_once, numbered
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.regrouping import Workshop
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

EACH = 5


def archive_more(stack: Stack, config: Path, topic: str, start: int) -> None:
    stack.produce(topic, *numbered(range(start, start + EACH)))
    archive_once(config)


@pytest.fixture
def archived(stack: Stack) -> tuple[Path, str]:
    topic = stack.topic()
    config = stack.config({topic: {}})
    config.write_text(config.read_text().replace("[archive]", '[archive]\norphan_grace = "0s"'))
    for start in (0, EACH):
        archive_more(stack, config, topic, start)
    return config, topic


def expire(config: Path, topic: str) -> None:
    (done,) = Expire(load_config(config), [topic], engine=InlineEngine()).run().topics
    assert done.error is None


def let_time_pass(config: Path) -> None:
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        connection.execute("UPDATE metadata SET updated = now() - interval '2 hours' WHERE key = 'rewrite'")


def test_killed_rewrite_ends_once_the_table_has_moved_on(
    stack: Stack, archived: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, topic = archived
    with Workshop.of(config) as shop:
        monkeypatch.setenv("ARCHIVER_FAULT", "before_commit:raise")
        with pytest.raises(InjectedFault):
            shop.put(shop.merged(shop.files(), (0, 2 * EACH)))
        monkeypatch.delenv("ARCHIVER_FAULT")
        (left,) = shop.registry.rewrites.unfinished(shop.topic)

        def is_open() -> bool:
            return shop.registry.rewrites.unfinished(shop.topic) == (left,)

        expire(config, topic)
        archive_more(stack, config, topic, 2 * EACH)
        expire(config, topic)
        assert is_open(), "it was begun a moment ago"
        let_time_pass(config)
        for _ in range(2):
            expire(config, topic)
            assert is_open(), "the table is as it was when attempts could be made"
        archive_more(stack, config, topic, 3 * EACH)
        expire(config, topic)
        assert not is_open()
        assert shop.registry.rewrites.ending(shop.topic) == {}
        (orphans,) = Orphans(load_config(config), [topic], deletes=True).run().topics
        assert {*left.new_paths} <= {orphan.path for orphan in orphans.deleted}
        done = shop.put(shop.merged(shop.files(), (0, 4 * EACH)))
        assert isinstance(done, Rewritten), "its files are free for others"
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


def test_one_that_was_only_slow_is_refused_or_recorded(
    stack: Stack, archived: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, topic = archived

    def slow(point: FaultPoint) -> None:
        if point == trigger:
            let_time_pass(config)
            expire(config, topic)
            archive_more(stack, config, topic, len(from_kafka(stack, topic, 1)))
            expire(config, topic)
        pass_point(point)

    monkeypatch.setattr(in_place, "pass_point", slow)
    with Workshop.of(config) as shop:
        trigger = FaultPoint.BEFORE_COMMIT
        with pytest.raises(RewriteRefused, match="gave this rewrite up"):
            shop.put(shop.merged(shop.files(), (0, 2 * EACH)))
        trigger = FaultPoint.AFTER_COMMIT
        assert isinstance(shop.put(shop.merged(shop.files(), (0, 3 * EACH))), Rewritten)
        assert shop.registry.rewrites.unfinished(shop.topic) == ()
        assert len(shop.files()) == 2
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
