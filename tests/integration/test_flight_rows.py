"""Rows of columns over Flight: the judges' bytes in replay and for Kafka clients, columns for Spark, after kills."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from archiver.upkeep.rebuild.job import Rebuild
from tests.support.archive.readers import Seen, from_archive, seen_from
from tests.support.archive.three_engines import rows_of_pyiceberg, rows_of_spark
from tests.support.clients.flight_client import flight_process, put
from tests.support.schemas.fake_registry import fake_registry
from tests.support.schemas.proto_text import descriptor_of
from tests.support.schemas.strategies_avro import written
from tests.support.schemas.upb_judge import message_class
from tests.support.servers.flight_config import PARTITIONS, WAITS, config_of
from tests.support.servers.serve_command import serving
from tests.support.servers.stack import Stack, unique

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves sockets of collect() open
]

PROTO = (
    'syntax = "proto3"; package t; message M { string device = 1; double temperature = 2; repeated string tags = 3; }'
)
FIELDS: list[dict[str, Any]] = [
    {"name": "device", "type": "string"},
    {"name": "temperature", "type": ["null", "double"]},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
]
AVRO = {"type": "record", "name": "M", "fields": FIELDS}
WIDER = {**AVRO, "fields": [*FIELDS, {"name": "room", "type": ["null", "string"], "default": None}]}
JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "device": {"type": "string"},
        "temperature": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
ROWS: list[Any] = [
    {
        "device": f"d{number % 7}",
        "temperature": number / 8 + 1 / 16 if number % 3 else None,
        "tags": ["a"] * (number % 3),
    }
    for number in range(1, 61)
]


def protobuf_value(row: Any) -> bytes:
    value: bytes = message_class(descriptor_of(PROTO))(**row).SerializeToString()
    return value


def avro_value(row: Any) -> bytes:
    return written(AVRO, row)


def json_value(row: Any) -> bytes:
    present = {name: value for name, value in row.items() if value is not None}
    return json.dumps(present, separators=(",", ":")).encode()


def format_in(folder: Path, name: str) -> dict[str, Any]:
    """The section of a format, with its schema in a file."""
    content = {"protobuf": PROTO, "avro": json.dumps(AVRO), "json": json.dumps(JSON_SCHEMA)}[name]
    file = folder / f"schema.{name}"
    file.write_text(content)
    if name == "protobuf":
        return {"format": name, "message": "t.M", "proto": str(file)}
    return {"format": name, "schema": str(file)}


def batches(rows: Sequence[Any], *, size: int = 20, first: int = 0) -> list[tuple[dict[str, Any], pa.RecordBatch]]:
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [
        ({"client": "gateway", "batch_id": first + number}, pa.RecordBatch.from_pylist(part))
        for number, part in enumerate(parts)
    ]


def send(address: str, topic: str, sent: list[tuple[dict[str, Any], pa.RecordBatch]]) -> list[dict[str, Any]]:
    return put(address, topic, sent, schema=sent[0][1].schema)


def consumed(config: Path, topic: str) -> list[Seen]:
    with serving(config) as address:
        options = {"bootstrap.servers": address, "group.id": "judge", "enable.partition.eof": True}
        consumer = Consumer({**options, "enable.auto.commit": False})
        consumer.list_topics(topic, 30.0)
        read = [record for partition in range(PARTITIONS) for record in seen_from(consumer, topic, partition)]
        consumer.close()
    return read


def values_of_table(stack: Stack, config: Path, topic: str) -> list[str]:
    table = stack.catalog().load_table(load_config(config).topic(topic).table)
    return sorted(canonical(row["val"]) for row in table.scan().to_arrow().to_pylist())


def canonical(row: dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in row.items() if value is not None}, sort_keys=True)


@pytest.mark.parametrize(("name", "judge"), [("protobuf", protobuf_value), ("avro", avro_value), ("json", json_value)])
def test_rows_are_records_of_their_values(
    stack: Stack, engine: SparkEngine, name: str, judge: Any, tmp_path: Path
) -> None:
    topic = unique("sensors")
    config = config_of(stack, topic, key="device", value=format_in(tmp_path, name))
    with flight_process(config) as server:
        answers = send(server.address, topic, batches(ROWS))
        assert send(server.address, topic, batches(ROWS)) == answers
        as_records = pa.record_batch({"key": [row["device"] for row in ROWS], "value": list(map(judge, ROWS))})
        (repeated,) = put(
            server.address, topic, [({"client": "records", "batch_id": 0}, as_records)], schema=as_records.schema
        )
    assert {part["partition"] for part in repeated["parts"]} == {
        part["partition"] for a in answers for part in a["parts"]
    }
    archived = from_archive(config, topic, PARTITIONS)
    expected = sorted((row["device"].encode(), judge(row)) for row in ROWS)
    assert sorted((record.key, record.value) for record in archived) == sorted(2 * expected)
    assert len({(record.key, record.partition) for record in archived}) == 7
    assert consumed(config, topic) == archived
    assert CliRunner().invoke(app, ["verify", topic, "--config", str(config)]).exit_code == 0
    table = load_config(config).topic(topic).table
    assert rows_of_spark(engine, table) == rows_of_pyiceberg(stack, table)
    default: dict[str, Any] = {"temperature": 0.0} if name == "protobuf" else {}
    columns = [canonical(default | {key: value for key, value in row.items() if value is not None}) for row in ROWS]
    assert values_of_table(stack, config, topic) == sorted(2 * columns)
    fresh = config.with_name("rebuilt.toml")
    dsn = json.dumps(load_config(config).registry.dsn)
    fresh.write_text(config.read_text().replace(dsn, json.dumps(stack.database())))
    Rebuild(load_config(fresh), [topic]).run()
    assert from_archive(fresh, topic, PARTITIONS) == archived


def test_waiting_rows_survive_a_kill_and_a_new_schema(stack: Stack, tmp_path: Path) -> None:
    """Plain Avro of the older schema is no value of the newer one."""
    topic = unique("sensors")
    section = format_in(tmp_path, "avro")
    config = config_of(stack, topic, key="device", value=section, **WAITS)
    wider = [row | {"room": "r"} for row in ROWS[:20]]
    with flight_process(config) as server:
        send(server.address, topic, batches(ROWS[:20]))
        Path(section["schema"]).write_text(json.dumps(WIDER))
        send(server.address, topic, batches(wider, first=1))
        changed = [row | {"room": 1} for row in ROWS[:1]]
        with pytest.raises(pa.ArrowInvalid, match=r"! val.room \(id \d+\) long takes the place of the string column"):
            send(server.address, topic, batches(changed, first=2))
        send(server.address, topic, batches(ROWS[20:40], first=2))
        server.process.kill()
        server.process.wait(60)
    last = {**WIDER, "fields": [*WIDER["fields"], {"name": "floor", "type": ["null", "int"], "default": None}]}
    Path(section["schema"]).write_text(json.dumps(last))
    with flight_process(config) as server, suppress(pa.ArrowException):
        send(server.address, topic, batches(ROWS[20:40], first=2))
    expected = [avro_value(row) for row in ROWS[:20]]
    expected += [written(WIDER, row) for row in (*wider, *(row | {"room": None} for row in ROWS[20:40]))]
    assert sorted(record.value for record in from_archive(config, topic, PARTITIONS)) == sorted(expected)
    assert values_of_table(stack, config, topic) == sorted(map(canonical, (*ROWS[:40], *wider)))


def test_coerced_rows_depend_on_no_registry(stack: Stack) -> None:
    """A client's header names no schema of a row. The message has another name when the rows are written."""
    topic = unique("sensors")
    value = {"format": "protobuf", "wire_format": "confluent", "coerce": True}
    config = config_of(stack, topic, value=value, **WAITS)
    headers = [{"key": "__value_schema_id", "value": b"\0\0\0\0\x09"}]
    sent = [row | {"__headers__": headers} for row in ROWS[:20]]
    with fake_registry() as registry:
        registry.register(f"{topic}-value", PROTO)
        config.write_text(f'{config.read_text()}\n[schema_registry]\nurl = "{registry.url}"\n')
        with flight_process(config) as server:
            send(server.address, topic, batches(sent))
            server.process.kill()
            server.process.wait(60)
        registry.register(f"{topic}-value", PROTO.replace("message M", "message N"))
        with flight_process(config) as server:
            send(server.address, topic, batches(sent, first=1))
    assert [record.value for record in from_archive(config, topic, PARTITIONS)] == 2 * [*map(protobuf_value, ROWS[:20])]
    columns = [canonical({"temperature": 0.0, **{k: v for k, v in row.items() if v is not None}}) for row in ROWS[:20]]
    assert values_of_table(stack, config, topic) == sorted(2 * columns)


def test_rows_and_records_share_files(stack: Stack, tmp_path: Path) -> None:
    topic = unique("sensors")
    config = config_of(stack, topic, key="device", value=format_in(tmp_path, "json"), **WAITS | {"partitions": 1})
    with flight_process(config) as server:
        for number in range(4):
            rows = ROWS[10 * number :][:10]
            send(server.address, topic, batches(rows, first=number))
            records = pa.record_batch({"key": [row["device"] for row in rows], "value": list(map(json_value, rows))})
            sent = [({"client": "records", "batch_id": number}, records)]
            put(server.address, topic, sent, schema=records.schema)
    table = stack.catalog().load_table(load_config(config).topic(topic).table)
    assert table.inspect.files()["record_count"].to_pylist() == [80]


@pytest.mark.parametrize("fault", ["wal_appended:kill@2", "files_staged:kill"])
def test_kill_keeps_each_row_once(stack: Stack, fault: str, tmp_path: Path) -> None:
    topic = unique("sensors")
    config = config_of(stack, topic, key="device", value=format_in(tmp_path, "json"))
    with flight_process(config, fault=fault) as server:
        with suppress(pa.ArrowException):
            send(server.address, topic, batches(ROWS))
        assert server.process.wait(60) == -9
    with flight_process(config) as server:
        send(server.address, topic, batches(ROWS))
    values = [record.value for record in from_archive(config, topic, PARTITIONS)]
    assert sorted(values) == sorted(map(json_value, ROWS))
