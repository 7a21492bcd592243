"""Legal holds: what they keep in table and store."""

from __future__ import annotations

import time

import psycopg
import pytest

from archiver.audit.trail import author
from archiver.config import load_config
from archiver.upkeep.holds import HoldKeeper
from archiver.upkeep.orphans.job import Orphans
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.retire.cut import RetireLimits
from catalog.errors import RecordsHeld
from catalog.model import new_id
from catalog.ranges.rewrite import Rewrite, RewriteGroup
from tests.support.archive.job_runs import archive_once, without_registry
from tests.support.archive.readers import from_kafka
from tests.support.archive.regrouping import Workshop, retired
from tests.support.archive.retirements import archived, check, expire, objects_left, produce
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration


def test_a_hold_stops_every_removal_until_it_is_released(stack: Stack) -> None:
    config, topic = archived(stack)
    settings = load_config(config)
    kafka = from_kafka(stack, topic, 1)
    with Workshop.of(config) as shop:
        paths = [file.path for file in shop.files()]
    placed = HoldKeeper(settings).place(topic, start="12", end="14", reason="case 7")
    by = author(settings.audit)
    assert placed.hold.placed_by == f"{by.principal} on {by.host}"
    done = expire(config, topic, limits=RetireLimits(offset=30))
    assert (done.succeeded, done.first_offsets, done.held) == (False, {0: 10}, {0: placed.hold.id})
    done = expire(config, topic, limits=RetireLimits(offset=30), rows=True)
    assert (done.first_offsets, done.held) == ({0: 12}, {0: placed.hold.id})
    check(config, topic, kafka[12:])
    with Workshop.of(config) as shop:
        old = shop.files()[1]
        group = RewriteGroup(paths=(old.path,), emptied=(retired(old, 20, 30),), why="older than a year")
        later = HoldKeeper(settings).place(topic, start="2026-01-03T00:00:00Z")
        assert [span.start_offset for span in later.hold.spans if span.partition == 0] == [20]
        assert any(span.overlaps(1, 0, 1) for span in later.hold.spans), "a partition that comes later"
        alone = Rewrite(commit_id=new_id(), reason="expire", schema_version=1, groups=(), first_offsets={0: 13})
        with pytest.raises(RecordsHeld, match="legal hold"):
            shop.registry.rewrites.begin(shop.topic, alone)
        with pytest.raises(RecordsHeld, match="legal hold") as caught:
            shop.put(group, reason="expire")
        assert caught.value.context["hold"] == later.hold.id
    late = HoldKeeper(settings).place(topic, start="0", end="12")
    assert late.retired == {0: 12}, "it comes too late for these"
    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    (listed,) = HoldKeeper(load_config(fresh)).listed()
    assert listed.holds == HoldKeeper(settings).listed()[0].holds
    for hold in listed.holds:
        assert not HoldKeeper(settings).release(topic, hold.id, reason="closed").is_active
    (listed,) = HoldKeeper(settings).listed(with_released=True)
    assert {hold.released_why for hold in listed.holds} == {"closed"}
    assert HoldKeeper(settings).listed()[0].holds == ()
    assert expire(config, topic, limits=RetireLimits(offset=30)).first_offsets == {0: 30}
    assert objects_left(config, paths) == []


def test_what_a_hold_comes_late_for_stays_in_the_store(stack: Stack) -> None:
    config, topic = archived(stack, snapshot_retention="1d")
    with Workshop.of(config) as shop:
        paths = [file.path for file in shop.files()]
    assert expire(config, topic, limits=RetireLimits(offset=20)).purged.left == tuple(sorted(paths[:2]))
    placed = HoldKeeper(load_config(config)).place(topic, start="5", end="10")
    assert placed.retired == {0: 20}
    text = config.read_text()
    config.write_text(text.replace('"1d"', '"0s"'))
    done = expire(config, topic)
    assert (done.purged.deleted, done.purged.held) == (1, 1)
    assert objects_left(config, paths) == [paths[0], paths[2]]
    orphans = Orphans(
        load_config(config), (topic,), older_than=None, deletes=True, clock=lambda: time.time() + 9 * 86_400
    )
    assert orphans.run().succeeded
    assert objects_left(config, paths) == [paths[0], paths[2]]
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        connection.execute("DELETE FROM holds")  # a database that was restored
    assert orphans.run().succeeded
    assert objects_left(config, paths) == [paths[0], paths[2]], "the journal remembers"
    HoldKeeper(load_config(config)).release(topic, placed.hold.id)
    assert expire(config, topic).purged.deleted == 1
    assert objects_left(config, paths) == [paths[2]]


def test_hold_survives_a_restored_database_and_future_records(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"snapshot_retention": "0s"}})
    days = [0, 400, 1, 2]
    for number, day in enumerate(days):
        produce(stack, topic, range(number * 10, number * 10 + 10), day=day)
        archive_once(config)
    placed = HoldKeeper(load_config(config)).place(topic, start="2026-01-02T00:00:00Z", end="2026-01-03T00:00:00Z")
    spans = [(span.start_offset, span.end_offset) for span in placed.hold.spans if span.partition == 0]
    assert spans == [(10, 30)]
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        connection.execute("DELETE FROM holds")
    done = expire(config, topic, limits=RetireLimits(offset=40))
    assert (done.first_offsets, list(done.held)) == ({0: 10}, [0])
    with Workshop.of(config) as shop:
        assert [hold.id for hold in shop.registry.holds.active(shop.topic)] == [placed.hold.id]
