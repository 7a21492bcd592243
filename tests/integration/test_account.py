"""Archived rows in files of other engines."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archiver.config import load_config
from archiver.records.where import Where
from archiver.storage.objects import ObjectStore
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.erase.job import Erase, EraseOptions
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.refill.report import Fate, RefillReport
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.retire.job import Expire, ExpireOptions
from archiver.upkeep.verify.findings import FaultKind
from archiver.upkeep.verify.job import Verify
from archiver.upkeep.verify.report import VerifiedTopic
from catalog.account.comparison import compare
from catalog.registry import RegistryReader
from tests.support.archive.job_runs import archive_once, without_registry
from tests.support.archive.readers import Seen, from_archive, from_kafka
from tests.support.catalog.foreign_deletes import delete_positions
from tests.support.catalog.foreign_writes import compact as put_together
from tests.support.catalog.foreign_writes import delete_rows, read, table_of
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack
from tests.support.storage.foreign_deletion import delete_object

pytestmark = pytest.mark.integration

START = 1_767_225_600_000
COUNT = 20
BUCKETS = ["bucket(2, key.__raw__)"]


def produce(stack: Stack, topic: str, numbers: range, partitions: int) -> None:
    stack.produce(
        topic,
        *(
            {"partition": partition, "key": b"k%d-%d" % (partition, n), "value": b"v%d" % n, "timestamp": START + n}
            for partition in range(partitions)
            for n in numbers
        ),
    )


def archived(stack: Stack, partitions: int = 1, **settings: Any) -> tuple[Path, str]:
    topic = stack.topic(partitions=partitions)
    config = stack.config({topic: {"snapshot_retention": "0s", **settings}})
    for start in (0, COUNT // 2):
        produce(stack, topic, range(start, start + COUNT // 2), partitions)
        archive_once(config)
    return config, topic


def erase(config: Path, topic: str, where: str, rows: int) -> None:
    report = Erase(
        load_config(config),
        topic,
        Where.parse(where),
        engine=InlineEngine(),
        options=EraseOptions(clock=lambda: time.time() + 9 * 86_400),
    ).run()
    assert report.succeeded, [str(error) for error in report.failures.values()]
    assert report.rows == rows


def expire(config: Path, topic: str, offset: int, partitions: frozenset[int]) -> None:
    limits = RetireLimits(offset=offset, partitions=partitions)
    (done,) = (
        Expire(load_config(config), [topic], limits=limits, options=ExpireOptions(rows=True), engine=InlineEngine())
        .run()
        .topics
    )
    assert done.succeeded, (done.error, done.failures, done.kept)
    assert done.first_offsets == dict.fromkeys(partitions, offset)


def refill(config: Path, topic: str) -> RefillReport:
    return RefillJob(load_config(config), topic, engine=InlineEngine()).run()


def compact(config: Path, topic: str) -> None:
    assert Compact(load_config(config), [topic], Wish(min_files=2), engine=InlineEngine).run().succeeded


def rebuilt(stack: Stack, config: Path, topic: str, *, with_journal: bool) -> Path:
    fresh = without_registry(stack, config, with_journal=with_journal)
    Rebuild(load_config(fresh), [topic]).run()
    return fresh


def verified(config: Path, topic: str) -> VerifiedTopic:
    report = Verify(load_config(config), [topic], engine=InlineEngine()).run()
    assert report.failed == ()
    return report.topics[0]


def check(
    stack: Stack, config: Path, topic: str, partitions: int = 1, *, gone: Callable[[Seen], bool] = lambda _: False
) -> None:
    left = [record for record in from_kafka(stack, topic, partitions) if not gone(record)]
    assert from_archive(config, topic, partitions) == left
    assert refill(config, topic).mended == ()
    report = verified(config, topic)
    assert (report.faults, report.rows) == ((), len(left))
    with RegistryReader(load_config(config).registry.dsn) as registry:
        (row,) = registry.topics.every()
        account, ranges = registry.ranges.both_books(row)
    assert compare(account, ranges) == ()
    assert sum(interval.expected for interval in account) == len(left)


def test_rows_that_a_refill_copied_are_erased_and_retired(stack: Stack) -> None:
    config, topic = archived(stack)
    delete_positions(stack, config, topic, 0, [3, 4, 5])
    assert refill(config, topic).rows(Fate.FROM_FILE) == 3
    check(stack, config, topic)
    erase(config, topic, "key = 'k0-4'", 1)
    check(stack, config, topic, gone=lambda record: record.offset == 4)
    delete_positions(stack, config, topic, 0, [12, 13])
    assert refill(config, topic).rows(Fate.FROM_FILE) == 2
    compact(config, topic)
    erase(config, topic, "key = 'k0-13'", 1)
    expire(config, topic, 13, frozenset({0}))
    check(stack, config, topic, gone=lambda record: record.offset <= 13)


def test_rows_that_a_compaction_missed_come_back_from_kafka(stack: Stack) -> None:
    config, topic = archived(stack, partition_by=BUCKETS)
    before = {file.file_path for file, _ in read(table_of(stack, config, topic))}
    delete_positions(stack, config, topic, 0, [3, 4, 5])
    compact(config, topic)
    present = {file.file_path for file, _ in read(table_of(stack, config, topic))}
    for path in before - present:
        delete_object(ObjectStore.of_table(table_of(stack, config, topic)), path)
    report = refill(config, topic)
    assert [(mended.fate, mended.rows) for mended in report.mended] == [(Fate.FROM_KAFKA, 3)], report.mended
    check(stack, config, topic)


@pytest.mark.parametrize("with_journal", [True, False])
def test_rebuild_after_a_refill_and_a_compaction(stack: Stack, *, with_journal: bool) -> None:
    config, topic = archived(stack, partition_by=BUCKETS)
    for _, rows in read(table_of(stack, config, topic)):
        offsets = [row["offset"] for row in rows["kafka"].to_pylist()]
        delete_positions(stack, config, topic, 0, offsets)
        assert refill(config, topic).rows(Fate.FROM_FILE) == rows.num_rows
    check(stack, config, topic)
    fresh = rebuilt(stack, config, topic, with_journal=with_journal)
    check(stack, fresh, topic)
    compact(fresh, topic)
    erase(fresh, topic, "key = 'k0-4'", 1)
    check(stack, fresh, topic, gone=lambda record: record.offset == 4)


def test_rows_that_only_the_table_shows_are_unknown(stack: Stack) -> None:
    config, topic = archived(stack, 2)
    put_together(stack, config, topic)
    erase(config, topic, "key = 'k0-7'", 1)
    produce(stack, topic, range(COUNT, COUNT + 5), 2)
    archive_once(config)
    bare = without_registry(stack, config, with_journal=False)
    (done,) = Rebuild(load_config(bare), [topic]).run()
    assert [span[0] for span in done.unknown] == [0, 1]
    (fault,) = verified(bare, topic).faults  # nothing shows the erased record any more
    assert (fault.kind, fault.partition) == (FaultKind.UNACCOUNTED, 0)
    compact(bare, topic)
    erase(bare, topic, "key = 'k1-7'", 1)
    gone = {(0, 7), (1, 7)}
    left = [record for record in from_kafka(stack, topic, 2) if (record.partition, record.offset) not in gone]
    assert from_archive(bare, topic, 2) == left
    assert refill(bare, topic).mended == ()
    with RegistryReader(load_config(bare).registry.dsn) as registry:
        (row,) = registry.topics.every()
        account, _ = registry.ranges.both_books(row)
    assert any(interval.is_unknown for interval in account)


def test_rewritten_copies_of_a_refill_are_erased(stack: Stack) -> None:
    config, topic = archived(stack)
    delete_rows(stack, config, topic, 0, [3, 4])
    assert refill(config, topic).rows(Fate.FROM_FILE) == 2
    put_together(stack, config, topic)
    erase(config, topic, "key = 'k0-4'", 1)
    check(stack, config, topic, gone=lambda record: record.offset == 4)
