"""Removals in partitioned or rewritten tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.config import load_config
from archiver.records.where import Where
from archiver.upkeep.erase.job import Erase, EraseOptions
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.repartition import repartition
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.retire.job import Expire, ExpireOptions
from archiver.upkeep.verify.job import Verify
from tests.fault.soak.told import problems
from tests.support.archive import partitioned
from tests.support.archive.job_runs import archive_once, without_registry
from tests.support.archive.partitioned import PARTITIONS, TERMS, check_files, settings
from tests.support.archive.readers import Seen, from_archive, from_kafka
from tests.support.archive.retirements import ranges_of
from tests.support.catalog.foreign_writes import compact, rewrite, table_of
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

Gone = Callable[[Seen], bool]
COUNT = 80
"""Records of a day: a partition's first day ends at offset 40, its second at 80."""
EDGE = 48
"""An offset in the second day, with records of its own partitions on both sides."""


def produce(stack: Stack, topic: str, turn: int) -> None:
    partitioned.produce(stack, topic, turn, count=COUNT)


def archived(stack: Stack, folder: Path, terms: list[str] | str = TERMS) -> tuple[Path, str]:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: settings(folder, terms, snapshot_retention="0s")})
    for turn in range(2):
        produce(stack, topic, turn)
        archive_once(config, topic, engine=InlineEngine())
    return config, topic


def has_key(one: Seen) -> bool:
    return one.key == b"k7"


def is_within(one: Seen) -> bool:
    return one.partition == 1 and 56 <= one.offset < 76


def records(stack: Stack, topic: str, those: Gone) -> int:
    count = sum(those(record) for record in from_kafka(stack, topic, PARTITIONS))
    assert count
    return count


def erase(config: Path, topic: str, where: str) -> int:
    report = Erase(
        load_config(config),
        topic,
        Where.parse(where),
        options=EraseOptions(clock=lambda: time.time() + 9 * 86_400),
        engine=InlineEngine(),
    ).run()
    assert report.succeeded, report
    return report.rows


def expire(config: Path, topic: str, offset: int) -> None:
    job = Expire(
        load_config(config),
        [topic],
        limits=RetireLimits(offset=offset),
        options=ExpireOptions(rows=True),
        engine=InlineEngine(),
    )
    (done,) = job.run().topics
    assert done.succeeded, done
    assert done.first_offsets == dict.fromkeys(range(PARTITIONS), offset)
    assert done.rewritten


def check(stack: Stack, config: Path, topic: str, gone: Gone) -> None:
    left = [record for record in from_kafka(stack, topic, PARTITIONS) if not gone(record)]
    assert from_archive(config, topic, PARTITIONS) == left
    assert RefillJob(load_config(config), topic, engine=InlineEngine()).run().mended == ()
    report = Verify(load_config(config), [topic], engine=InlineEngine()).run()
    assert report.failed == ()
    assert (report.topics[0].faults, report.topics[0].rows) == ((), len(left))
    assert problems(config, topic) == []


@pytest.mark.parametrize("by", ["nobody", "others"])
def test_rows_leave_and_the_others_keep_their_partitions(stack: Stack, tmp_path: Path, by: str) -> None:
    config, topic = archived(stack, tmp_path)
    if by == "others":
        rewrite(stack, config, topic)
    (files,) = check_files(table_of(stack, config, topic)).values()
    assert erase(config, topic, "key = 'k7'") == records(stack, topic, has_key)
    assert 0 < check_files(table_of(stack, config, topic)).total() <= files
    check(stack, config, topic, has_key)
    if by == "others":
        return
    expire(config, topic, EDGE)
    check_files(table_of(stack, config, topic))
    check(stack, config, topic, lambda one: has_key(one) or one.offset < EDGE)
    within = "partition = 1 and offset >= 56 and offset < 76"
    assert erase(config, topic, within) == records(stack, topic, lambda one: is_within(one) and not has_key(one))
    check_files(table_of(stack, config, topic))

    def gone(one: Seen) -> bool:
        was_there = one.offset < COUNT  # what comes later is new, whatever its key
        return (was_there and has_key(one)) or one.offset < EDGE or is_within(one)

    check(stack, config, topic, gone)
    before = ranges_of(config)
    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    assert ranges_of(fresh) == before
    check(stack, fresh, topic, gone)
    produce(stack, topic, 2)
    archive_once(fresh, topic, engine=InlineEngine())
    check_files(table_of(stack, fresh, topic))
    check(stack, fresh, topic, gone)


def test_files_of_several_specs_keep_theirs(stack: Stack, tmp_path: Path) -> None:
    config, topic = archived(stack, tmp_path, "day")
    with table_of(stack, config, topic).update_spec() as update:
        update.remove_field("ingest_day")
    rewrite(stack, config, topic)
    with table_of(stack, config, topic).update_spec() as update:
        update.add_field("ingest_timestamp", "day", "ingest_day")
    produce(stack, topic, 2)
    archive_once(config, topic, engine=InlineEngine())
    config.write_text(config.read_text().replace('"partition_by" = "day"', f'"partition_by" = {TERMS}'))
    assert repartition(load_config(config), topic).was_changed
    produce(stack, topic, 3)
    archive_once(config, topic, engine=InlineEngine())
    specs = check_files(table_of(stack, config, topic)).keys()
    assert len(specs) == 3
    assert erase(config, topic, "key = 'k7'") == records(stack, topic, has_key)
    assert check_files(table_of(stack, config, topic)).keys() == specs
    check(stack, config, topic, has_key)
    expire(config, topic, EDGE)
    assert check_files(table_of(stack, config, topic)).keys() == specs
    check(stack, config, topic, lambda record: has_key(record) or record.offset < EDGE)


@pytest.mark.parametrize("terms", ["day", TERMS])
def test_file_with_rows_of_many_partitions_keeps_its_place(
    stack: Stack, tmp_path: Path, terms: list[str] | str
) -> None:
    config, topic = archived(stack, tmp_path, terms)
    compact(stack, config, topic)
    ((spec_id, partition),) = places(stack, config, topic)
    assert erase(config, topic, "key = 'k7'") == records(stack, topic, has_key)
    assert places(stack, config, topic) == [(spec_id, partition)]
    expire(config, topic, EDGE)
    assert places(stack, config, topic) == [(spec_id, partition)]
    check(stack, config, topic, lambda record: has_key(record) or record.offset < EDGE)


def places(stack: Stack, config: Path, topic: str) -> list[tuple[int, str]]:
    files = (task.file for task in table_of(stack, config, topic).scan().plan_files())
    return [(file.spec_id, repr(file.partition)) for file in files]
