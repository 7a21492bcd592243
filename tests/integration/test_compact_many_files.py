"""Three thousand files are compacted."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from archiver.archive.table_files import ManifestReader
from archiver.config import load_config
from archiver.engine.runner import TaskOutcome
from archiver.engine.spark import SparkEngine
from archiver.upkeep.compact.job import Compact
from tests.support.archive.job_runs import archive_once, run
from tests.support.archive.readers import Seen, digest_of, from_archive, from_kafka
from tests.support.archive.regrouping import Workshop
from tests.support.archive.three_engines import duckdb_on, rows_of_duckdb, rows_of_pyiceberg, rows_of_spark
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.order_schema import ORDER_PROTO, order_bytes
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(3_600),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

PARTITIONS = 4
FILES = 3_000
EACH = 20


class ManySlots(InlineEngine):
    slots = 64


class OneByOne(InlineEngine):
    def __init__(self, happens: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self._happens: list[Callable[[], object]] = [happens]

    def run_tasks(self, tasks: Sequence[Any], run: Callable[[Any], Any]) -> Iterator[TaskOutcome[Any]]:
        for outcome in super().run_tasks(tasks, run):
            while self._happens:
                self._happens.pop()()
            yield outcome


def files_of(config: Path) -> int:
    with Workshop.of(config) as shop:
        return len(ManifestReader().files(shop.table.iceberg))


def query_seconds(stack: Stack, table: str) -> float:
    with duckdb_on(stack) as connection:
        taken = []
        for _ in range(5):
            started = time.monotonic()
            connection.sql(
                f"SELECT kafka.partition, count(*), max(val.id), max(kafka.offset) FROM lake.{table} GROUP BY 1"
            ).fetchall()
            taken.append(time.monotonic() - started)
    return sorted(taken)[2]


def produce(stack: Stack, topic: str, noise: random.Random, files: int, note: bytes) -> None:
    values = [order_bytes(noise) + note for _ in range(997)]
    messages = (
        {
            "key": b"k%d" % (number % 91),
            "value": values[number % 997],
            "partition": number // EACH % PARTITIONS,
            "timestamp": 1_700_000_000_000 + number,
            "headers": [("h", b"%d" % number)] if number % 3 else None,
        }
        for number in range(files * EACH)
    )
    stack.produce(topic, *messages, batch_num_messages=EACH, linger_ms=1_000)


def test_three_thousand_files(
    stack: Stack, engine: SparkEngine, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    proto, noise = tmp_path / "order.proto", random.Random(7)
    proto.write_text(ORDER_PROTO)
    topic = stack.topic(PARTITIONS)
    value = {"format": "protobuf", "message": "shop.Order", "proto": str(proto)}
    config = stack.config({topic: {"value": value}}, archive={"task_size": f"{EACH * 100}B"})
    table = load_config(config).topic(topic).table
    produce(stack, topic, noise, FILES // 2, b"")
    archive_once(config, topic, engine=ManySlots())
    proto.write_text(ORDER_PROTO.replace("message Order {", "message Order { string note = 99;"))
    produce(stack, topic, noise, FILES // 2, b"\x9a\x06\x04note")
    archive_once(config, topic, engine=ManySlots())
    engine.session.sql(f"ALTER TABLE lake.{table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')").collect()
    engine.session.sql(f"DELETE FROM lake.{table} WHERE kafka.partition = 1 AND kafka.offset % 50 = 7").collect()
    before, seconds_before = files_of(config), query_seconds(stack, table)
    rows = rows_of_pyiceberg(stack, table)

    def archive_more() -> None:
        produce(stack, topic, noise, 40, b"")
        run(config, topic)  # no success: it tells that others deleted rows

    started = time.monotonic()
    report = Compact(load_config(config), engine=lambda: OneByOne(archive_more)).run()
    seconds = time.monotonic() - started
    assert report.succeeded, report
    done = report.done
    kafka = [
        record for record in from_kafka(stack, topic, PARTITIONS) if record.partition != 1 or not is_deleted(record)
    ]
    archive = from_archive(config, topic, PARTITIONS)
    assert archive == kafka
    assert digest_of(archive) == digest_of(kafka)
    first = f"kafka.offset < {FILES * EACH // PARTITIONS}"
    assert rows_of_duckdb(stack, table, first) == rows
    assert rows_of_pyiceberg(stack, table, first) == rows
    assert rows_of_spark(engine, table, first) == rows
    measured = {
        "files": (before, done.files_after),
        "bytes": (done.bytes_before, done.bytes_after),
        "query seconds": (round(seconds_before, 3), round(query_seconds(stack, table), 3)),
        "seconds": round(seconds, 1),
        "core seconds": round(done.cpu_seconds, 1),
        "deleted rows": done.removed,
    }
    record_property("found", measured)
    print(measured)  # noqa: T201 - for whoever runs it with -s
    assert before >= FILES * 0.9
    assert done.files_after <= 2 * PARTITIONS
    assert done.bytes_after < 0.5 * done.bytes_before


def is_deleted(record: Seen) -> bool:
    return record.partition == 1 and record.offset < FILES * EACH // PARTITIONS and record.offset % 50 == 7
