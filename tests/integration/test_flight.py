"""Rows of Flight clients."""

from __future__ import annotations

import json
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from confluent_kafka import Consumer
from typer.testing import CliRunner, Result

from archiver.cli.app import app
from tests.support.archive.readers import from_archive, seen_from
from tests.support.clients.flight_client import act, flight_process, put, records
from tests.support.servers.flight_config import PARTITIONS, WAITS, config_of
from tests.support.servers.serve_command import serving
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration

ROWS = 50


def batches(count: int) -> list[tuple[dict[str, Any], pa.RecordBatch]]:
    return [({"client": "sensor", "batch_id": number}, records(number * ROWS, ROWS)) for number in range(count)]


def run(*arguments: str, config: Path) -> Result:
    return CliRunner().invoke(app, [*arguments, "--config", str(config)])


def values_in(config: Path, topic: str) -> list[bytes]:
    return [record.value for record in from_archive(config, topic, PARTITIONS)]


def test_rows_are_a_topic_like_any_other(stack: Stack) -> None:
    topic = unique("sensors")
    config = config_of(stack, topic)
    with flight_process(config) as server:
        answers = put(server.address, topic, batches(4))
        assert put(server.address, topic, batches(4)) == answers
        assert act(server.address, "position", topic=topic, client="sensor") == {"incarnation": 0, "next_batch_id": 4}
    assert [answer["durable"] for answer in answers] == ["disk"] * 4
    archived = from_archive(config, topic, PARTITIONS)
    assert sorted(record.value for record in archived) == sorted(b"value-%d" % number for number in range(4 * ROWS))
    with serving(config) as address:
        consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "judge",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        consumer.list_topics(topic, 30.0)
        read = [record for partition in range(PARTITIONS) for record in seen_from(consumer, topic, partition)]
        consumer.close()
    assert read == archived
    verified = run("verify", topic, "--against-kafka", config=config)
    assert verified.exit_code == 0, verified.output
    shown = run("status", config=config)
    assert shown.exit_code == 0, shown.output
    (status,) = json.loads(shown.output)["topics"]
    assert (status["lag_records"], status["log"]["drained"]) == (0, True)
    assert sum(partition["high_watermark"] for partition in status["partitions"]) == 4 * ROWS
    (listed,) = json.loads(run("topics", config=config).output)["topics"]
    assert (listed["source"], listed["partitions"], listed["in_cluster"]) == ("flight", PARTITIONS, False)
    refused = run("archive", "--once", config=config)
    assert refused.exit_code == 2
    assert "There is no topic of Kafka to archive" in refused.output
    with flight_process(config) as server:
        assert put(server.address, topic, batches(4)) == answers
        assert act(server.address, "position", topic=topic, client="sensor")["next_batch_id"] == 4


@pytest.mark.parametrize(
    "fault", ["wal_appended:kill@2", "wal_synced:kill@2", "after_upload:kill", "files_staged:kill", "after_commit:kill"]
)
def test_kill_keeps_each_row_once(stack: Stack, fault: str) -> None:
    topic = unique("sensors")
    config = config_of(stack, topic)
    with flight_process(config, fault=fault) as server:
        with suppress(pa.ArrowException):
            put(server.address, topic, batches(3))
        assert server.process.wait(60) == -9
    with flight_process(config) as server:
        put(server.address, topic, batches(3))
    assert sorted(values_in(config, topic)) == sorted(b"value-%d" % number for number in range(3 * ROWS))


def test_erasure_reaches_rows_that_wait_in_the_log(stack: Stack) -> None:
    topic = unique("sensors")
    config = config_of(stack, topic, **WAITS)
    folder = config.parent / "wal" / topic
    with flight_process(config) as server:
        put(server.address, topic, batches(1))
        assert b"value-7" in b"".join(file.read_bytes() for file in folder.glob("*.wal"))
        erased = run("erase", topic, "--where", "key = 'key-0'", "--yes", config=config)
        assert erased.exit_code == 0, erased.output
        events = [json.loads(line) for line in erased.output.splitlines()]
        (report,) = [event for event in events if event["event"] == "erased"]
        assert report["records"] == len(range(0, ROWS, 7))
        assert b"value-7" not in b"".join(file.read_bytes() for file in folder.glob("*.wal"))
        put(server.address, topic, batches(2))
        server.process.kill()
        server.process.wait(60)
    age_report(config, topic)
    refused = run("erase", topic, "--where", "key = 'key-1'", "--yes", config=config)
    assert refused.exit_code != 0
    assert "its server has not reported for" in refused.output
    with flight_process(config):
        pass
    kept = {b"value-%d" % number for number in range(ROWS) if number % 7}
    assert set(values_in(config, topic)) == kept | {b"value-%d" % number for number in range(ROWS, 2 * ROWS)}


def age_report(config: Path, topic: str) -> None:
    dsn = tomllib.loads(config.read_text())["registry"]["dsn"]
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "UPDATE intake_logs SET reported_at = reported_at - interval '1 hour'"
            " WHERE topic_id = (SELECT id FROM topics WHERE topic = %s)",
            (topic,),
        )


def test_a_damaged_log_is_given_up_and_the_topic_continues(stack: Stack) -> None:
    topic = unique("sensors")
    config = config_of(stack, topic, **WAITS)
    folder = config.parent / "wal" / topic
    with flight_process(config) as server:
        put(server.address, topic, batches(3))
        server.process.kill()
        server.process.wait(60)
    (segment,) = folder.glob("*.wal")
    content = segment.read_bytes()
    damage = content.index(b"value-%d" % ROWS)
    segment.write_bytes(content[:damage] + b"?" + content[damage + 1 :])
    age_report(config, topic)
    shown = json.loads(run("abandon", topic, "--dry-run", config=config).output)
    assert (shown["saved_rows"], shown["lost_offsets"]) == (2 * ROWS, ROWS)
    given_up = run("abandon", topic, "--skip", "1000", "--yes", config=config)
    assert given_up.exit_code == 0, given_up.output
    report = json.loads(given_up.output)
    assert report["clients"] == [{"client": "sensor", "next_batch_id": 3}]
    assert {part["partition"]: part["lost"] for part in report["partitions"]} == {
        part["partition"]: part["lost"] for part in shown["partitions"]
    }
    again = run("abandon", topic, "--yes", config=config)
    assert "there is nothing to give up" in again.output
    with pytest.raises(json.JSONDecodeError), flight_process(config):
        pass  # the folder has the log that was given up
    folder.rename(folder.with_suffix(".lost"))
    with flight_process(config) as server:
        assert act(server.address, "position", topic=topic, client="sensor")["next_batch_id"] == 3
        (answer,) = put(server.address, topic, [({"client": "sensor", "batch_id": 3}, records(3 * ROWS, ROWS))])
    starts = {part["partition"]: part["next_offset"] for part in report["partitions"]}
    assert all(part["base_offset"] == starts[part["partition"]] for part in answer["parts"])
    (status,) = json.loads(run("status", config=config).output)["topics"]
    assert status["lost_offsets"] == ROWS + PARTITIONS * 1000
    values = sorted(record.value for record in from_archive(config, topic, PARTITIONS))
    kept = [*range(ROWS), *range(2 * ROWS, 4 * ROWS)]
    assert values == sorted(b"value-%d" % number for number in kept)
    assert run("verify", topic, config=config).exit_code == 0
