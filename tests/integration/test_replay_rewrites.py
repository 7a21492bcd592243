"""Replays after rewrites by Spark."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.order_schema import ORDER_PROTO, order_bytes
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

PARTITIONS = 3
TURNS = 4


@pytest.fixture
def archived(stack: Stack, tmp_path: Path) -> tuple[Path, str]:
    proto = tmp_path / "order.proto"
    proto.write_text(ORDER_PROTO)
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {"value": {"format": "protobuf", "message": "shop.Order", "proto": str(proto)}}})
    noise = random.Random(7)
    for turn in range(TURNS):
        values = [order_bytes(noise) for _ in range(300)] + [None, b"", b"\xff", noise.randbytes(30)]
        stack.produce(
            topic,
            *(
                {
                    "key": f"{turn}-{number}" if number % 3 else None,
                    "value": value,
                    "partition": number % PARTITIONS,
                    "timestamp": 1_700_000_000_000 + number % 2 * 86_400_000,
                    "headers": [("h", str(number).encode())] if number % 2 else None,
                }
                for number, value in enumerate(values)
            ),
        )
        archive_once(config, topic, engine=InlineEngine())
    return config, topic


@pytest.mark.parametrize("strategy", ["'binpack'", "'sort', sort_order => 'kafka.partition, kafka.offset'"])
def test_rewritten_files_give_the_same_records(
    stack: Stack, archived: tuple[Path, str], engine: SparkEngine, strategy: str
) -> None:
    config, topic = archived
    table = load_config(config).topic(topic).table
    before = from_archive(config, topic, PARTITIONS)
    assert before == from_kafka(stack, topic, PARTITIONS)
    (done,) = engine.session.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table}', strategy => {strategy}, "
        "options => map('rewrite-all', 'true'))"
    ).collect()
    assert done["rewritten_data_files_count"] >= TURNS
    assert from_archive(config, topic, PARTITIONS) == before


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_rows_that_spark_deletes_become_gaps(
    stack: Stack, archived: tuple[Path, str], engine: SparkEngine, mode: str
) -> None:
    config, topic = archived
    table = load_config(config).topic(topic).table
    engine.session.sql(f"ALTER TABLE lake.{table} SET TBLPROPERTIES ('write.delete.mode' = '{mode}')").collect()
    engine.session.sql(f"DELETE FROM lake.{table} WHERE kafka.partition = 1 AND kafka.offset % 5 = 2").collect()
    expected = [
        record
        for record in from_kafka(stack, topic, PARTITIONS)
        if not (record.partition == 1 and record.offset % 5 == 2)
    ]
    assert from_archive(config, topic, PARTITIONS) == expected


def test_archiving_goes_on_after_a_rewrite(stack: Stack, archived: tuple[Path, str], engine: SparkEngine) -> None:
    config, topic = archived
    table = load_config(config).topic(topic).table
    engine.session.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
    ).collect()
    stack.produce(topic, *({"value": b"\xff%d" % number, "partition": number % PARTITIONS} for number in range(30)))
    archive_once(config, topic, engine=engine)
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)
