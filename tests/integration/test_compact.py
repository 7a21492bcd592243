"""`archiver compact` on the real stack."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from archiver.archive.table_files import ManifestReader
from archiver.chores.runner import ChoreRunner
from archiver.chores.tidying import TIDYING
from archiver.commit.find_holes import search
from archiver.config import load_config
from archiver.engine.runner import Engine, TaskOutcome
from archiver.engine.spark import SparkEngine
from archiver.ingest.job import ArchiveJob
from archiver.upkeep.compact.chore import compaction
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.compact.report import CompactEvent, CompactReport, GroupsCommitted
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.verify.job import Verify
from tests.support.archive.job_runs import archive_once, numbered, run, without_registry
from tests.support.archive.readers import Seen, digest_of, from_archive, from_kafka
from tests.support.archive.regrouping import Workshop
from tests.support.archive.three_engines import rows_of_duckdb, rows_of_pyiceberg, rows_of_spark
from tests.support.catalog.foreign_writes import compact as put_together_by_others
from tests.support.catalog.foreign_writes import delete_rows
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.order_schema import ORDER_PROTO, order_bytes
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

PARTITIONS = 4


def compacted(config: Path, *, dry_run: bool = False, engine: Engine | None = None) -> CompactReport:
    wish = Wish(min_files=2, dry_run=dry_run)
    return Compact(load_config(config), wish=wish, engine=lambda: engine or InlineEngine()).run()


def check(stack: Stack, config: Path, topic: str) -> None:
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)
    with Workshop.of(config) as shop:
        assert search(shop.table, shop.registry.rows.expected_ranges(shop.topic), shop.table.first_offsets) == ()
        assert shop.registry.files.pending(shop.topic) == ()
        assert shop.registry.rewrites.unfinished(shop.topic) == ()
    assert Verify(load_config(config), [topic], engine=InlineEngine()).run().succeeded


def sizes(config: Path) -> list[int]:
    with Workshop.of(config) as shop:
        return sorted(file.rows for file in ManifestReader().files(shop.table.iceberg))


@pytest.fixture
def archived(stack: Stack) -> tuple[Path, str]:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}})
    for start in range(0, 120, 40):
        stack.produce(topic, *numbered(range(start, start + 40), PARTITIONS))
        archive_once(config)
    return config, topic


def test_small_files_become_one_a_partition(stack: Stack, archived: tuple[Path, str]) -> None:
    config, topic = archived
    planned = compacted(config, dry_run=True)
    assert (planned.topics[0].planned_files, planned.topics[0].expected_files) == (12, 4)
    assert sizes(config) == [10] * 12, "a dry run changes nothing"
    report = compacted(config)
    assert report.succeeded, report
    assert (report.done.files_before, report.done.files_after, report.done.rows) == (12, 4, 120)
    assert sizes(config) == [30] * 4
    check(stack, config, topic)
    with Workshop.of(config) as shop:
        ranges = shop.registry.rows.expected_ranges(shop.topic)
        assert [(range_.partition, range_.start_offset, range_.end_offset) for range_ in ranges] == [
            (n, 0, 30) for n in range(4)
        ]
    assert compacted(config).done.files_before == 0, "nothing is left to do"
    bare = without_registry(stack, config, with_journal=False)
    Rebuild(load_config(bare), [topic]).run()
    stack.produce(topic, *numbered(range(40), PARTITIONS))
    archive_once(bare)
    check(stack, bare, topic)


class Meanwhile(InlineEngine):
    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__()
        self._happens: list[Callable[[], object]] = [happens]

    def run_tasks(self, tasks: Sequence[Any], run: Callable[[Any], Any]) -> Iterator[TaskOutcome[Any]]:
        done = list(super().run_tasks(tasks, run))
        while self._happens:
            self._happens.pop()()
        return iter(done)


def bounds(config: Path) -> list[tuple[int, int, int]]:
    with Workshop.of(config) as shop:
        files = list(ManifestReader().files(shop.table.iceberg))
    assert all(file.partitions and file.partitions.low == file.partitions.high for file in files)
    return sorted((f.partitions.low, f.offsets.low, f.offsets.high) for f in files if f.partitions and f.offsets)


def test_an_archiver_appends_and_others_delete_meanwhile(stack: Stack, archived: tuple[Path, str]) -> None:
    config, topic = archived

    def others() -> None:
        stack.produce(topic, *numbered(range(40), PARTITIONS))
        archive_once(config)
        delete_rows(stack, config, topic, 1, [3])

    report = compacted(config, engine=Meanwhile(others))
    assert report.succeeded, report
    assert report.topics[0].again == 1
    left = [record for record in from_kafka(stack, topic, PARTITIONS) if (record.partition, record.offset) != (1, 3)]
    assert from_archive(config, topic, PARTITIONS) == left
    with Workshop.of(config) as shop:
        (hole,) = search(shop.table, shop.registry.rows.expected_ranges(shop.topic), shop.table.first_offsets)
        assert (hole.partition, hole.start_offset, hole.end_offset, hole.rows) == (1, 3, 4, 1)


def test_a_registry_from_an_older_backup_is_brought_up_to_date(stack: Stack, archived: tuple[Path, str]) -> None:
    """Without their ranges, the newest files would count as foreign."""
    config, topic = archived
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        connection.execute(
            "DELETE FROM files USING topics WHERE files.topic_id = topics.id AND topic = %s AND start_offset >= 20",
            (topic,),
        )
    assert compacted(config).succeeded
    assert bounds(config) == [(partition, 0, 29) for partition in range(PARTITIONS)]
    check(stack, config, topic)
    with Workshop.of(config) as shop:
        ranges = shop.registry.rows.expected_ranges(shop.topic)
    assert [(range_.partition, range_.start_offset, range_.end_offset) for range_ in ranges] == [
        (partition, 0, 30) for partition in range(PARTITIONS)
    ]


def test_files_of_others_are_sorted_and_split(stack: Stack, archived: tuple[Path, str]) -> None:
    config, topic = archived
    put_together_by_others(stack, config, topic)
    stack.produce(topic, *numbered(range(40), PARTITIONS))
    archive_once(config)
    assert compacted(config).succeeded
    assert bounds(config) == [(n, low, high) for n in range(4) for low, high in ((0, 29), (30, 39))]
    check(stack, config, topic)
    bare = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(bare), [topic]).run()
    check(stack, bare, topic)


def test_an_archive_job_compacts_in_its_pauses(stack: Stack) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {"compact": "auto", "compact_min_files": 2}})
    for start in range(0, 120, 40):
        stack.produce(topic, *numbered(range(start, start + 40), PARTITIONS))
        archive_once(config)
    stop = threading.Event()
    taken: list[int] = []

    def watch(event: CompactEvent) -> None:
        if isinstance(event, GroupsCommitted):
            taken.append(event.done.files_before)
        if sum(taken) == 3 * PARTITIONS:
            stop.set()

    patience = threading.Timer(120, stop.set)
    patience.start()
    settings = load_config(config)
    report = ArchiveJob(
        settings, engine=InlineEngine(), chores=ChoreRunner((TIDYING, compaction(settings, watch)))
    ).run_every(5.0, stop)
    patience.cancel()
    assert report.succeeded, report
    assert sizes(config) == [30] * 4
    check(stack, config, topic)


PROTO_LATER = ORDER_PROTO.replace("message Order {", "message Order { string note = 99;")
TURNS = 5


@pytest.fixture
def orders(stack: Stack, tmp_path: Path) -> tuple[Path, str]:
    proto = tmp_path / "order.proto"
    topic, noise = stack.topic(PARTITIONS), random.Random(7)
    proto.write_text(ORDER_PROTO)
    config = stack.config({topic: {"value": {"format": "protobuf", "message": "shop.Order", "proto": str(proto)}}})
    for turn in range(TURNS):
        if turn == TURNS // 2:
            proto.write_text(PROTO_LATER)
        note = b"\x9a\x06\x04note" if turn >= TURNS // 2 else b""
        values = [order_bytes(noise) + note for _ in range(236)] + [None, b"", b"\xff", noise.randbytes(30)]
        stack.produce(
            topic,
            *(
                {
                    "key": f"{turn}-{number}" if number % 3 else None,
                    "value": value,
                    "partition": number % PARTITIONS,
                    "timestamp": 1_700_000_000_000 + (number >= 120) * 86_400_000,
                    "headers": [("h", str(number).encode())] if number % 2 else None,
                }
                for number, value in enumerate(values)
            ),
            batch_num_messages=1,
        )
        archive_once(config, topic, engine=InlineEngine())
    return config, topic


def test_schemas_deletes_and_archiving_at_once_on_spark(
    stack: Stack, orders: tuple[Path, str], engine: SparkEngine
) -> None:
    config, topic = orders
    table = load_config(config).topic(topic).table
    files = len(bounds(config))
    engine.session.sql(f"ALTER TABLE lake.{table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')").collect()
    engine.session.sql(f"DELETE FROM lake.{table} WHERE kafka.partition = 1 AND kafka.offset % 50 = 7").collect()

    def is_left(record: Seen) -> bool:
        return record.partition != 1 or record.offset % 50 != 7 or record.offset >= 60 * TURNS

    before = rows_of_pyiceberg(stack, table)
    report = compacted(config, engine=engine)
    assert report.succeeded, report
    done = report.done
    assert files == done.files_before == 2 * PARTITIONS * TURNS
    assert done.files_after == 2 * PARTITIONS
    assert done.bytes_after < 0.9 * done.bytes_before
    assert rows_of_pyiceberg(stack, table) == before
    assert rows_of_spark(engine, table) == before
    assert rows_of_duckdb(stack, table) == before
    stack.produce(topic, *({"value": b"\xff%d" % number, "partition": number % PARTITIONS} for number in range(30)))
    assert not run(config, topic).succeeded, "rows are missing, as others deleted them"
    kafka = [record for record in from_kafka(stack, topic, PARTITIONS) if is_left(record)]
    archive = from_archive(config, topic, PARTITIONS)
    assert archive == kafka
    assert digest_of(archive) == digest_of(kafka)
    assert compacted(config).done.removed == 0, "deletes are applied once"
    RefillJob(load_config(config), topic, engine=InlineEngine()).run()
    check(stack, config, topic)
